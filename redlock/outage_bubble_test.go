package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Who waits and reaches no quorum says so when that lasts for a TTL, and then more and more seldom.
// A crowd says it once.
func TestOutageIsSaidAndRepeatedSparingly(t *testing.T) {
	for _, waiters := range []int{1, 10} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var log lockedBuffer
				q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				said := func() int { return strings.Count(log.String(), "no quorum to acquire a key that is waited for") }
				acquire(t, q)
				freeze(t, fleet, 0, 1)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, waiters)
				for i := range waiters {
					go func() {
						_, err := q.Acquire(ctx, fmt.Sprint("key", i), redlock.WithoutAutoExtend())
						ended <- err
					}()
				}
				time.Sleep(ttl / 2)
				require.Zero(t, said(), "%s", &log)
				time.Sleep(3 * ttl)
				require.Equal(t, 1, said(), "%s", &log)
				require.Contains(t, log.String(), "level=WARN msg=\"redlock: no quorum to acquire")
				require.Contains(t, log.String(), "key=key")
				time.Sleep(5 * time.Minute)
				require.GreaterOrEqual(t, said(), 2)
				require.LessOrEqual(t, said(), 4, "it is repeated sparingly: %s", &log)

				thaw(t, fleet, 0, 1)
				time.Sleep(10 * ttl)
				require.NotContains(t, log.String()[strings.LastIndex(log.String(), "answers again"):], "no quorum")
				require.Contains(t, log.String(), "a quorum answers again")
				cancel()
				synctest.Wait()
				for range waiters {
					if err := <-ended; err != nil {
						require.True(t, errors.Is(err, context.Canceled))
					}
				}
			})
		})
	}
}

// Who waits for a key gives up, twice, in two outages. The second one is not told of as having
// lasted since the first.
func TestOutageThatNobodyNotedIsOver(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for outage := range 2 {
			freeze(t, fleet, 0, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
			_, err := q.Acquire(ctx, "key")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			cancel()
			require.Equal(t, outage+1, strings.Count(log.String(), "no quorum to acquire a key that is waited for\" key=key"), "%s", &log)
			thaw(t, fleet, 0, 1)
			time.Sleep(10 * time.Minute)
		}
		require.NotContains(t, log.String(), "for=10m")
	})
}
