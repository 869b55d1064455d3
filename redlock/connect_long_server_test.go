//go:build long

package redlock_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// A server that closes connections which are idle (timeout) is well: nothing is said of it, also if
// the next request finds its connection closed.
func TestIdleConnectionsThatAreClosedAreNoOutage(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, valkeytest.WithArgs("--timeout", "1"))
	var log lockedBuffer
	q := s.gated(redlock.WithTTL(longTTL), logTo(&log))
	for range 3 {
		require.Eventually(t, func() bool {
			for i := range s.Nodes() {
				if s.info(i, "connected_clients") != "1" { // which asks
					return false
				}
			}
			return true
		}, 2*longTTL, 10*pollTick, "idle connections are not closed, so this tests nothing")
		l, err := tryUntilAnswered(t, q, "key")
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
	}
	require.NotContains(t, log.String(), "failing")
	require.NotContains(t, log.String(), "answers again")

	s.kill(0)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "node failing") }, 2*longTTL, pollTick, "it is dead")
}

// fullEnv has a process of this test's be many clients of servers, of which one is full.
const fullEnv = "TENURE_TEST_FULL_SERVER"

// A server at maxclients sends a refusal that nobody asked for, and a busy client is done with the
// connection by then. valkey-go panics at it, and that ended 50 of 2,313 processes.
func TestFullServerEndsNoProcess(t *testing.T) {
	if urls := os.Getenv(fullEnv); urls != "" {
		crowd(t, strings.Split(urls, ","))
		return
	}
	s := startAged(t, 3)
	s.do([]string{"CONFIG", "SET", "maxclients", "1"}, 0)
	var processes sync.WaitGroup
	defer processes.Wait()
	for range 3 {
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestFullServerEndsNoProcess$", "-test.count", "1")
		process.Env = append(os.Environ(), fullEnv+"="+strings.Join(s.URLs(), ","))
		processes.Go(func() {
			if output, err := process.CombinedOutput(); err != nil {
				t.Errorf("a client died: %v\n%s", err, output)
			}
		})
	}
}

// crowd opens many Quorums on a busy machine.
func crowd(t *testing.T, urls []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var work sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for ctx.Err() == nil { // keeps a processor busy
			}
		})
	}
	for range 8 {
		work.Go(func() {
			for ctx.Err() == nil {
				q, err := redlock.Open(urls, redlock.WithTTL(time.Second), redlock.WithMaxTTL(time.Minute),
					redlock.WithNodeTimeout(time.Millisecond), redlock.WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				for range 5 {
					if l, err := q.TryAcquire(ctx, "key"); err == nil {
						_ = l.Release(ctx)
					}
				}
				require.NoError(t, q.Close())
			}
		})
	}
	work.Wait()
}
