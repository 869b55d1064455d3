package redlock_test

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

const recordKey = "tenure:{key}:once"

// runID asks a node for that of its process.
func runID(t *testing.T, n *redlocktest.Node) string {
	t.Helper()
	conn, err := n.Dial(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"))
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id
		}
	}
}

func atMostOnce(n int64) redlock.LeaseOption {
	return redlock.WithSequence(n, redlock.AtMostOnce, time.Hour)
}

func atLeastOnce(n int64) redlock.LeaseOption {
	return redlock.WithSequence(n, redlock.AtLeastOnce, time.Hour)
}

// requireDone is refused because of the sequence.
func requireDone(t *testing.T, q *redlock.Quorum, opt redlock.LeaseOption) *redlock.DoneError {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), "key", opt)
	require.ErrorIs(t, err, redlock.ErrDone)
	require.Nil(t, l)
	require.Equal(t, "done", redlock.ErrorType(err))
	var de *redlock.DoneError
	require.ErrorAs(t, err, &de)
	return de
}

func finish(t *testing.T, end func(context.Context) error) {
	t.Helper()
	require.NoError(t, end(t.Context()))
	synctest.Wait()
}

// runTick runs a tick.
func runTick(t *testing.T, q *redlock.Quorum) {
	t.Helper()
	l := acquire(t, q, tick())
	require.NoError(t, l.Complete(t.Context()))
	synctest.Wait()
	time.Sleep(time.Millisecond)
}

// tick is an option for the tick that is due now.
func tick() redlock.LeaseOption { return redlock.WithTick(time.Now(), redlock.AtMostOnce, time.Hour) }

// requirePaused demands that the tick that is due now is refused because of a pause.
func requirePaused(t *testing.T, q *redlock.Quorum, opts ...redlock.LeaseOption) redlock.Pause {
	t.Helper()
	_, err := q.TryAcquire(t.Context(), "key", append([]redlock.LeaseOption{tick()}, opts...)...)
	var paused *redlock.PausedError
	require.ErrorAs(t, err, &paused)
	require.ErrorIs(t, err, redlock.ErrPaused)
	require.Equal(t, "paused", redlock.ErrorType(err))
	return paused.Pause
}
