//go:build long

package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// A server is restarted again and again without its data under 10,000 leases that two servers of
// three have, while another process asks for the same keys over a way on which connections break:
// before a batch is written, while it is under way, and inside the call that writes it. None of
// what the new processes grant makes a second lease. Without the gate it does.
func TestGateRestartsUnderManyLeases(t *testing.T) {
	const leases, workers, restarts = 10_000, 64, 5
	for _, gate := range []bool{true, false} {
		t.Run(fmt.Sprint("gate: ", gate), func(t *testing.T) {
			s := startAged(t, 3)
			opts := []redlock.Option{redlock.WithTTL(6 * longTTL)}
			if !gate {
				opts = append(opts, redlock.WithoutRestartGate())
			}
			first := s.gated(append(opts, cutOff(s.Node(2)))...)
			way := startDetour(t, s.Node(1).Addr())
			second := gatedURLs(t, []string{s.Node(0).URL(), s.Node(1).URL(), s.Node(2).URL()}, append(opts,
				redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
					if url == s.Node(1).URL() {
						o.InitAddress = []string{way.Addr().String()}
					}
				}))...)
			held := make([]*redlock.Lease, leases)
			each(workers, leases, func(i int) {
				l, err := tryUntilAnswered(t, first, fmt.Sprint("key", i), redlock.WithoutAutoExtend())
				if assert.NoError(t, err) {
					held[i] = l
				}
			})
			require.False(t, t.Failed())
			if !gate {
				s.do([]string{"DEL", "tenure:roster"}) // else it would be noticed that the server has lost its data
			}

			ctx, stop := context.WithCancel(t.Context())
			var breaking sync.WaitGroup
			breaking.Go(func() {
				for ctx.Err() == nil {
					way.cut()
					time.Sleep(7 * time.Millisecond)
				}
			})
			var asked, twice atomic.Int64
			var asking sync.WaitGroup
			asking.Go(func() {
				each(workers, leases, func(i int) {
					for range 2 {
						asked.Add(1)
						l, err := second.TryAcquire(t.Context(), fmt.Sprint("key", i), redlock.WithoutAutoExtend())
						if err == nil && l.Err() == nil && held[i].Err() == nil {
							twice.Add(1)
						}
					}
				})
				stop()
			})
			for range restarts {
				at := asked.Load()
				require.Eventually(t, func() bool { return asked.Load() > at+leases/restarts || ctx.Err() != nil }, patience, pollTick)
				if ctx.Err() == nil {
					s.restart(1)
				}
			}
			asking.Wait()
			breaking.Wait()
			if gate {
				require.Zero(t, twice.Load(), "two leases on a key, of %d attempts", asked.Load())
			} else {
				require.Positive(t, twice.Load(), "of %d attempts, so this tests nothing", asked.Load())
			}
		})
	}
}

// each has workers call f for each number below n.
func each(workers, n int, f func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}
