//go:build long

package elector_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// What a crowd of candidates costs the nodes: next to nothing at a hand-over, and an attempt of
// each process in a TTL, however many candidates it has.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{fleet: redlocktest.StartPipes(t, 5), led: make(chan *leadership)}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var crashing atomic.Bool
		over := make(chan struct{})
		for p := range crowdProcesses {
			q, err := redlock.Open(c.fleet.URLs(), redlock.WithTTL(crowdTTL), redlock.WithTracer(counting(&c.sent)), redlock.WithLogger(slog.New(slog.DiscardHandler)),
				redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
					c.fleet.ClientOption(url, o)
					o.RingScaleEachConn = 1
				}))
			require.NoError(t, err)
			c.quorum = append(c.quorum, q)
			q.Nodes(t.Context())
			for i := p; i < *candidates; i += crowdProcesses {
				e, err := elector.New(q, "crowd", elector.WithIdentity(fmt.Sprint("candidate ", i)), elector.WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				running.Go(func() {
					_ = e.Run(ctx, func(ctx context.Context, term *elector.Term) error {
						c.led <- &leadership{p, term}
						<-ctx.Done()
						if crashing.Load() {
							<-over // it does not come to release anything
						}
						return nil
					})
				})
			}
		}
		first := <-c.led
		time.Sleep(4 * crowdTTL) // until all wait, and ask at times of their own

		idle, all, took := c.during(func() { time.Sleep(2 * crowdTTL) })
		perSecond := float64(idle) / took.Seconds()
		assert.LessOrEqual(t, perSecond, 2*5*crowdProcesses/crowdTTL.Seconds()+5, "an attempt of each process at each node in a TTL, half of which are rolled back, and the leader's extensions")
		assert.LessOrEqual(t, float64(all-idle)/took.Seconds(), 0.6*5*crowdProcesses, "in a TTL a process looks at a node once, asks it for the time once, and says four times at most who belongs")

		var second *leadership
		released, _, vacant := c.during(func() {
			require.NoError(t, first.term.Resign(ctx))
			second = <-c.led
		})
		assert.Less(t, vacant, 50*time.Millisecond)
		assert.LessOrEqual(t, float64(released), 25+perSecond*vacant.Seconds(), "only the next one comes, and the end of the term is told")

		var third *leadership
		crashed, _, dead := c.during(func() {
			crashing.Store(true)
			assert.NoError(t, c.quorum[second.process].Close()) // its keys stay, as those of a process that was killed
			third = <-c.led
		})
		assert.Less(t, dead, crowdTTL+50*time.Millisecond)
		assert.NotEqual(t, second.process, third.process)
		assert.LessOrEqual(t, float64(crashed), 100+1.1*perSecond*dead.Seconds(), "the first few of the queue come, and not all")
		t.Logf("%d candidates in %d processes, 5 nodes, TTL %v: idle %.1f commands/s for leases and %.1f others; %d commands in %v at a release; %d in %v at a crash, %.0f of them as when idle",
			*candidates, crowdProcesses, crowdTTL, perSecond, float64(all-idle)/took.Seconds(), released, vacant, crashed, dead, perSecond*dead.Seconds())
		close(over)
		cancel()
		done := make(chan struct{})
		go func() { running.Wait(); close(done) }()
		for drained := false; !drained; {
			select {
			case <-c.led:
			case <-done:
				drained = true
			}
		}
		for _, q := range c.quorum {
			require.NoError(t, q.Close())
		}
	})
}

// A lead that passes its context's error on has not failed: no back-off, no warning, and the reason
// is what ended the term.
func TestLeadThatReturnsItsContextsErrorHasNotFailed(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		e := candidate(t, fleet, elector.WithBackoff(time.Hour, time.Hour))
		terms := make(chan *elector.Term, 10)
		r := run(t, e, func(ctx context.Context, term *elector.Term) error {
			terms <- term
			<-ctx.Done()
			return ctx.Err()
		})
		changes := e.Changes(t.Context())
		require.NoError(t, (<-terms).Resign(t.Context()))
		<-terms
		most(t, fleet, (*redlocktest.Node).Freeze)
		time.Sleep(2 * ttl)
		most(t, fleet, (*redlocktest.Node).Thaw)
		<-terms
		require.NoError(t, r.end())
		var reasons []elector.Reason
		for c := range changes {
			if c.Kind != elector.Elected {
				if reasons = append(reasons, c.Reason); len(reasons) == 3 {
					break
				}
			}
		}
		require.Equal(t, []elector.Reason{elector.ReasonResigned, elector.ReasonDeadline, elector.ReasonShutdown}, reasons)
	})
}

// An Elector that is given to gocron, and whose Run nobody calls, says so, once, and not at once.
func TestElectorThatIsNeverRunSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		log := new(journal)
		e := candidate(t, fleet, elector.WithLogger(log.logger()))
		require.ErrorIs(t, e.IsLeader(t.Context()), elector.ErrNotLeader)
		time.Sleep(29 * time.Second)
		require.ErrorIs(t, e.IsLeader(t.Context()), elector.ErrNotLeader)
		require.Empty(t, log.lines("Run was never called"))
		time.Sleep(time.Second)
		for range 3 {
			require.ErrorIs(t, e.IsLeader(t.Context()), elector.ErrNotLeader)
			time.Sleep(time.Minute)
		}
		require.Len(t, log.lines("Run was never called"), 1)
		require.Contains(t, log.lines("Run was never called")[0], "election=test")

		ran := new(journal)
		e = candidate(t, fleet, elector.WithLogger(ran.logger()))
		require.NoError(t, run(t, e, nil).end())
		time.Sleep(time.Hour)
		require.ErrorIs(t, e.IsLeader(t.Context()), elector.ErrNotLeader)
		require.Empty(t, ran.lines("Run was never called"))
	})
}
