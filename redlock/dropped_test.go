package redlock_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// safeLog is a log that is read while it is written.
type safeLog struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *safeLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// lines returns those that contain part.
func (l *safeLog) lines(part string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// A lease that nobody has any more is extended on, as a program may mean to hold it for as long as
// it lives; but nobody can release it, so that is said. Whoever has its context has it.
func TestDroppedLeaseIsSaid(t *testing.T) {
	fleet := redlocktest.Start(t, 3)
	log := &safeLog{}
	q, err := redlock.Open(fleet.URLs(), redlock.WithLogger(log.logger()), redlock.WithoutRestartGate(), redlock.WithPrefix("dropped"))
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	acquire := func(key string, opts ...redlock.LeaseOption) *redlock.Lease {
		l, err := q.Acquire(t.Context(), key, opts...)
		require.NoError(t, err)
		return l
	}

	var kept context.Context
	func() {
		kept = acquire("kept").Context()
		require.NoError(t, acquire("released").Release(t.Context()))
		acquire("by hand", redlock.WithoutAutoExtend())
		acquire("left to run out").StopExtending()
		acquire("dropped")
	}()
	warned := func() []string { return log.lines("a Lease was dropped") }
	require.Eventually(t, func() bool { runtime.GC(); return len(warned()) > 0 }, 30*time.Second, 10*time.Millisecond)
	for range 5 {
		runtime.GC()
	}
	require.Len(t, warned(), 1)
	require.Contains(t, warned()[0], "key=dropped")
	h, err := q.Holder(t.Context(), "dropped")
	require.NoError(t, err)
	require.NotZero(t, h.FencingToken)
	require.NoError(t, kept.Err())
	runtime.KeepAlive(kept)
}
