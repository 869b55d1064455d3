//go:build long

package elector_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// An observer sees hand-overs, and what people are told does not make hand-overs slow.
func TestHandOversAreObservedOnRealServers(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]elector.Option{
		"told":     nil,
		"not told": {elector.WithoutHistory(), elector.WithoutCard(), elector.WithoutOrders()},
	} {
		t.Run(name, func(t *testing.T) {
			const handOvers = 10
			fleet := valkeytest.Start(t, 3)
			open := func() *redlock.Quorum {
				q, err := redlock.Open(fleet.URLs(), redlock.WithTTL(serverTTL), redlock.WithoutRestartGate())
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, q.Close()) })
				return q
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			leaders := make(chan elector.Leader, 1000)
			var observer sync.WaitGroup
			q := open()
			observer.Go(func() {
				for l, err := range elector.Observe(ctx, q, "test") {
					if err == nil {
						leaders <- l
					}
				}
			})
			elected := make(chan *elector.Term, 1)
			var runs []*running
			for range 2 {
				e, err := elector.New(open(), "test", append(opts, elector.WithBackoff(50*time.Millisecond, time.Second))...)
				require.NoError(t, err)
				runs = append(runs, run(t, e, func(ctx context.Context, term *elector.Term) error {
					elected <- term
					return untilDone(ctx, term)
				}))
			}
			term := <-elected
			var gaps []time.Duration
			for i := range handOvers {
				require.Eventually(t, func() bool { return waiters(t, fleet) > 0 }, 20*time.Second, 5*time.Millisecond, "the other waits")
				released := make(chan time.Time, 1)
				go func() {
					_ = term.Resign(ctx)
					released <- time.Now()
				}()
				next := <-elected
				gaps = append(gaps, time.Since(<-released))
				for i == 0 || i == handOvers-1 { // more would be more reads than it may make
					l := <-leaders
					require.LessOrEqual(t, l.Term, next.Number())
					if l.Term == next.Number() {
						require.Positive(t, l.TTL)
						break
					}
				}
				term = next
			}
			slices.Sort(gaps)
			t.Logf("%d hand-overs: from the release to the next lead %v in the middle, %v at most", len(gaps), gaps[len(gaps)/2], gaps[len(gaps)-1])
			require.Less(t, gaps[len(gaps)/2], serverTTL/2)
			for _, r := range runs {
				r.stop()
			}
			for _, r := range runs {
				for done := false; !done; {
					select {
					case <-elected:
					case err := <-r.done:
						require.NoError(t, err)
						done = true
					}
				}
			}
			cancel()
			observer.Wait()
		})
	}
}
