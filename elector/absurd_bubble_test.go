package elector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Each option of a duration works, through failures and a drain, or is refused by name.
func TestAbsurdDurations(t *testing.T) {
	const day = 24 * time.Hour
	for _, d := range []time.Duration{math.MinInt64, -1, 0, 1, time.Millisecond, time.Second, day, day + 1, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithMaxTTL(day), redlock.WithoutRestartGate(),
					redlock.WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				defer func() { require.NoError(t, q.Close()) }()
				try := func(name string, fits bool, option elector.Option) {
					e, err := elector.New(q, "test", elector.WithLogger(slog.New(slog.DiscardHandler)), option)
					if !fits {
						var oe *elector.OptionError
						require.ErrorAs(t, err, &oe)
						require.Equal(t, name, oe.Option)
						return
					}
					require.NoError(t, err)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					terms := 0
					require.NoError(t, e.Run(ctx, func(context.Context, *elector.Term) error {
						terms++
						switch {
						case terms == 2:
							cancel()
						case name == "WithBackoff" && d > time.Hour:
							time.AfterFunc(time.Second, cancel) // in the pause, which is too long to wait for
						}
						return errors.New("failed")
					}))
					require.NotZero(t, terms)
				}
				try("lease", d >= redlock.MinTTL && d <= day, elector.WithTTL(d))
				try("WithDrainTimeout", d > 0 && d <= day, elector.WithDrainTimeout(d))
				for _, most := range []time.Duration{math.MinInt64, d, day, math.MaxInt64} {
					try("WithBackoff", d >= time.Millisecond && most >= d && most <= day, elector.WithBackoff(d, most))
				}
			})
		})
	}
}
