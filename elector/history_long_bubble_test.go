//go:build long

package elector_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// The history tells of a loss when lead returns, or else of one that overruns.
func TestHistoryOfLosses(t *testing.T) {
	for name, test := range map[string]struct {
		drain time.Duration
		lead  func(context.Context) // after the term; nil for no lead
		cut   bool                  // the nodes are out of reach for a while
		want  []string
	}{
		"deadline":             {ttl, func(context.Context) {}, true, []string{"a elected", "a lost deadline"}},
		"no lead":              {ttl, nil, true, []string{"a elected", "a lost deadline"}},
		"lead takes a while":   {ttl, func(context.Context) { time.Sleep(ttl / 2) }, true, []string{"a elected", "a lost deadline"}},
		"lead takes too long":  {ttl / 4, func(context.Context) { time.Sleep(2 * ttl) }, true, []string{"a elected", "a lost deadline"}},
		"lead does not return": {ttl / 4, func(context.Context) { time.Sleep(100 * ttl) }, false, []string{"a elected", "a lost drain_timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := onlooker(t, fleet)
				a := candidate(t, fleet, elector.WithIdentity("a"), elector.WithDrainTimeout(test.drain))
				var second atomic.Bool
				lead := func(ctx context.Context, _ *elector.Term) error {
					<-ctx.Done()
					if !second.Swap(true) {
						test.lead(ctx)
					}
					return nil
				}
				if test.lead == nil {
					lead = nil
				}
				r := run(t, a, lead)
				time.Sleep(ttl)
				if test.cut {
					require.NoError(t, fleet.Node(0).Freeze())
					require.NoError(t, fleet.Node(1).Freeze())
					time.Sleep(validity + 100*time.Millisecond)
					require.False(t, leads(a))
					require.NoError(t, fleet.Node(0).Thaw())
					require.NoError(t, fleet.Node(1).Thaw())
					time.Sleep(3 * ttl)
				} else {
					require.ErrorIs(t, r.end(), elector.ErrDrainTimeout)
				}
				got := words(history(t, q))
				require.GreaterOrEqual(t, len(got), len(test.want))
				require.Equal(t, test.want, got[:2])
				for _, word := range got[2:] {
					require.Equal(t, "a elected", word, "the end is told once")
				}
				time.Sleep(100 * ttl)
				if test.cut {
					require.NoError(t, r.end())
				}
			})
		})
	}
}
