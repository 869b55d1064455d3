package redlock_test

import (
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// absurd are durations that somebody passes by mistake.
var absurd = []time.Duration{math.MinInt64, math.MinInt64 + 1, -time.Hour, -1, 0, 1, 1000 * time.Hour,
	100 * 366 * 24 * time.Hour, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64}

// works demands that a key is had with the options, is kept for some TTLs, and is free after its
// release.
func works(t *testing.T, q *redlock.Quorum, key string, opts ...redlock.LeaseOption) {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), key, opts...)
	require.NoError(t, err)
	require.NoError(t, l.Err())
	require.Positive(t, time.Until(l.Deadline()))
	time.Sleep(l.TTL() * 3 / 4)
	require.NoError(t, l.Extend(t.Context()))
	time.Sleep(l.TTL() / 2)
	require.NoError(t, l.Err())
	require.NoError(t, l.Release(t.Context()))
	next, err := q.Acquire(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, next.Release(t.Context()))
}

// requireOptionError demands that what an option cannot be is said, by its name.
func requireOptionError(t *testing.T, err error, option string) {
	t.Helper()
	var oe *redlock.OptionError
	require.ErrorAs(t, err, &oe)
	require.Equal(t, option, oe.Option)
}

// Each option of a duration works, or is refused by name. None panics, overflows, or floods the
// nodes.
func TestAbsurdDurations(t *testing.T) {
	t.Parallel()
	quorum := map[string]func(time.Duration) redlock.Option{
		"WithMaxTTL": redlock.WithMaxTTL, "WithClockSkew": redlock.WithClockSkew, "WithNodeTimeout": redlock.WithNodeTimeout,
	}
	lease := map[string]func(time.Duration) redlock.LeaseOption{
		"WithTTL":            func(d time.Duration) redlock.LeaseOption { return redlock.WithTTL(d) },
		"WithExtendInterval": func(d time.Duration) redlock.LeaseOption { return redlock.WithExtendInterval(d) },
		"WithMinHold":        func(d time.Duration) redlock.LeaseOption { return redlock.WithMinHold(d) },
	}
	for _, d := range absurd {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				for name, option := range quorum {
					q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(slog.New(slog.DiscardHandler)), option(d))
					if err != nil {
						requireOptionError(t, err, name)
						continue
					}
					require.Less(t, d, 24*time.Hour, "%s has no bound", name)
					assert.NoError(t, q.Close())
				}
				q := open(t, fleet)
				for name, option := range lease {
					for _, more := range [][]redlock.LeaseOption{nil, {redlock.WithoutAutoExtend()}} {
						opts := append([]redlock.LeaseOption{option(d)}, more...)
						if err := q.Validate("key", opts...); err != nil {
							requireOptionError(t, err, name)
							continue
						}
						require.Less(t, d, 24*time.Hour+1, "%s has no bound", name)
						works(t, q, name, opts...)
					}
				}
			})
		})
	}
}
