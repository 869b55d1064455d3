//go:build long

package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// The replica that gets a tick is shut down before it has begun the run. The others were told that
// it is held: they follow it until it is done.
func TestTickOfAReplicaThatIsShutDownAtOnceIsRun(t *testing.T) {
	for _, policy := range []scheduler.CatchUp{scheduler.CatchUpLatest, scheduler.CatchUpAll} {
		for _, ms := range []int{5, 10, 25, 49, 51, 75, 99, 101, 150} {
			t.Run(fmt.Sprintf("%v, %d ms after the tick", policy, ms), func(t *testing.T) {
				inCluster(t, func(t *testing.T, c *cluster) {
					var replicas []*replica
					for i := range 3 {
						// The first asks first.
						r := c.replica(scheduler.WithCatchUp(time.Minute, policy), ahead(time.Duration(2-i)*5*time.Millisecond))
						r.add(t, tenSecondly, func(ctx context.Context) { nap(ctx, 100*time.Millisecond) })
						r.Start()
						replicas = append(replicas, r)
					}
					until(12 * time.Second)
					c.delay(50 * time.Millisecond)
					until(20*time.Second - 10*time.Millisecond + time.Duration(ms)*time.Millisecond)
					require.NoError(t, replicas[0].Shutdown())
					until(29 * time.Second)
					require.Equal(t, []int{10, 20}, c.book.tickSeconds())
					require.Equal(t, 1, c.book.most)
				})
			})
		}
	}
}

// A job whose task takes longer than its interval does not carry the delay of an outage along for
// ever. The backlog is told.
func TestBacklogOfASlowJobIsWorkedOff(t *testing.T) {
	for _, overlap := range []scheduler.Overlap{scheduler.OverlapSkip, scheduler.OverlapQueue} {
		t.Run(overlap.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				const outage = 2 * time.Minute
				log := new(journal)
				b := &backlogs{book: c.book}
				r := c.replica(scheduler.WithCatchUp(3*time.Minute, scheduler.CatchUpAll), scheduler.WithOverlap(overlap),
					scheduler.WithTracer(b), scheduler.WithLogger(log.logger()))
				r.add(t, tenSecondly, func(ctx context.Context) { nap(ctx, 12*time.Second) })
				r.Start()
				until(35 * time.Second)
				c.freeze(0, 1, 2)
				until(35*time.Second + outage)
				c.thaw(0, 1, 2)
				until(35*time.Second + outage + 3*time.Minute)
				require.Equal(t, 1, c.book.most)
				require.True(t, slices.IsSortedFunc(c.book.ticks(), time.Time.Compare), "in order: %v", c.book.tickSeconds())
				last, began := c.book.run(len(c.book.runs) - 1)
				require.Less(t, began.Sub(last.Tick), 20*time.Second, "the delay has ended within the window")
				require.Zero(t, c.book.reasons()[scheduler.SkipMissed], "no tick has become too old")
				require.NotZero(t, c.book.reasons()[scheduler.SkipOverlap])
				most := slices.MaxFunc(b.told, func(a, b scheduler.TraceBacklogData) int { return a.Ticks - b.Ticks })
				require.Greater(t, most.Ticks, 8)
				require.False(t, most.Oldest.IsZero())
				require.LessOrEqual(t, b.told[len(b.told)-1].Ticks, 1)
				require.Len(t, log.lines("a job falls behind its schedule"), 1)
			})
		})
	}
}

// Followers do not keep ticks that have been run: nodes that have forgotten would grant them again.
func TestElectedReplicaRunsNothingAgain(t *testing.T) {
	for _, delivery := range []redlock.Delivery{redlock.AtMostOnce, redlock.AtLeastOnce} {
		t.Run(delivery.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var replicas []*replica
				for range 3 {
					r := c.replica(scheduler.WithElection("jobs"), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll), scheduler.WithDelivery(delivery))
					r.add(t, gocron.CronJob("*/10 * * * *", false), func() {})
					r.Start()
					replicas = append(replicas, r)
				}
				until(21 * time.Minute)
				for _, n := range c.fleet.Nodes() { // one after the other, and no lease is lost
					require.NoError(t, n.Restart(false))
					time.Sleep(20 * time.Second)
				}
				until(25 * time.Minute)
				for _, r := range replicas {
					if r.Elector().IsLeader(t.Context()) == nil {
						require.NoError(t, r.Shutdown())
						break
					}
				}
				until(31 * time.Minute)
				require.Equal(t, []int{600, 1200, 1800}, c.book.tickSeconds())
			})
		})
	}
}

// Every node is restarted without its data, one after the other, while a job waits for its next
// tick. They know its last tick all the same: nothing is run again, and what is missed later is
// caught up.
func TestLastTickOfAnIdleJobSurvivesRestarts(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				start := func() (replicas []*replica) {
					for range 3 {
						r := c.gatedReplica(append(mode.opts, scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll))...)
						r.add(t, gocron.CronJob("*/10 * * * *", false), func() {})
						r.Start()
						replicas = append(replicas, r)
					}
					return replicas
				}
				until(time.Minute) // the nodes vote
				replicas := start()
				until(21 * time.Minute)
				for _, n := range c.fleet.Nodes() {
					require.NoError(t, n.Restart(false))
					time.Sleep(20 * time.Second) // a quarantine and a little more
				}
				until(25 * time.Minute)
				for _, r := range replicas {
					require.NoError(t, r.Shutdown())
				}
				until(35 * time.Minute)
				start()
				until(41 * time.Minute)
				require.Equal(t, []int{600, 1200, 1800, 2400}, c.book.tickSeconds())
				late, _ := c.book.run(2)
				require.True(t, late.CatchUp)
			})
		})
	}
}

// A tick that was really granted, and cut short, is asked for once, and holds up none of those
// after it.
func TestTickThatWasCutIsAskedForOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll))
		r.add(t, tenSecondly, func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Tick.After(at(10)) {
				panic("from now on")
			}
		})
		r.Start()
		until(65 * time.Second)
		require.NoError(t, r.Shutdown())
		r = c.named("a", scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll))
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(95 * time.Second)
		require.Equal(t, []int{10, 20, 30, 40, 50, 60, 70, 80, 90}, c.book.tickSeconds())
		require.Equal(t, map[scheduler.Reason]int{scheduler.SkipDone: 5}, c.book.reasons(), "those that were cut, once each")
		for i := range 9 {
			run, _ := c.book.run(i)
			require.False(t, run.CatchUp, "tick %v", run.Tick)
		}
	})
}

// A replica meets its own attempt, which has failed without its knowing and is being taken back.
// That is no run, and the tick is tried again.
func TestOwnAttemptIsNoRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(19 * time.Second)
		takeBack := c.leaveBehind("a", at(20), 0, 1, 2)
		until(20500 * time.Millisecond)
		require.Equal(t, []int{10}, c.book.tickSeconds())
		takeBack()
		until(35 * time.Second)
		require.Equal(t, []int{10, 20, 30}, c.book.tickSeconds())
		require.Equal(t, 1, c.book.reasons()[scheduler.SkipTimeout])
	})
	t.Run("soon", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			r := c.named("a")
			r.add(t, gocron.CronJob("* * * * * *", true), func() {})
			r.Start()
			until(19500 * time.Millisecond)
			takeBack := c.leaveBehind("a", at(20), 0, 1, 2)
			until(20200 * time.Millisecond)
			takeBack()
			until(21500 * time.Millisecond)
			ticks := c.book.tickSeconds()
			require.Equal(t, []int{19, 20, 21}, ticks[len(ticks)-3:], "the next tick does not take its place")
		})
	})
	t.Run("of another replica, with catch-up", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			r := c.named("a", scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
			r.add(t, tenSecondly, func() {})
			r.Start()
			until(19 * time.Second)
			takeBack := c.leaveBehind("b", at(20), 0, 1, 2)
			until(20500 * time.Millisecond)
			takeBack()
			until(35 * time.Second)
			require.Equal(t, []int{10, 20, 30}, c.book.tickSeconds())
		})
	})
	t.Run("of another replica", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			r := c.named("a")
			r.add(t, tenSecondly, func() {})
			r.Start()
			until(19 * time.Second)
			c.leaveBehind("b", at(20), 0, 1, 2)
			until(35 * time.Second)
			require.Equal(t, []int{10, 30}, c.book.tickSeconds(), "it was granted, as far as anybody can tell")
			require.Equal(t, map[scheduler.Reason]int{scheduler.SkipDone: 1}, c.book.reasons())
		})
	})
}

// A machine stands still for longer than a node timeout when a tick comes, so no replica can ask
// for it.
func TestTickInAStallIsRunWithinTheGrace(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 3 {
					r := c.replica(mode.opts...)
					r.add(t, tenSecondly, func() {})
					r.Start()
				}
				for tick := 10; tick <= 60; tick += 10 {
					until(time.Duration(tick)*time.Second - 100*time.Millisecond)
					c.freeze(0, 1, 2, 3, 4)
					until(time.Duration(tick)*time.Second + time.Duration(tick)*25*time.Millisecond)
					c.thaw(0, 1, 2, 3, 4)
				}
				until(65 * time.Second)
				require.Equal(t, []int{10, 20, 30, 40, 50, 60}, c.book.tickSeconds())
			})
		})
	}
}

// A run is cut short. Its tick came while an earlier run went on, or its interval began then.
func TestTickThatWasCutShortIsRunAgain(t *testing.T) {
	t.Run("of a duration job", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			// The run of an interval begins 1.7 s after it and goes on into the next one.
			start := func() *replica {
				r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(redlock.AtLeastOnce))
				r.add(t, gocron.DurationJob(2*time.Second), func(ctx context.Context) {
					if run, _ := scheduler.RunFromContext(ctx); run.Tick.Equal(at(5).Add(700 * time.Millisecond)) {
						<-ctx.Done()
						time.Sleep(time.Minute) // dead
					}
					nap(ctx, 600*time.Millisecond)
				})
				r.Start()
				return r
			}
			until(1700 * time.Millisecond)
			victim := start()
			until(5800 * time.Millisecond)
			require.NoError(t, victim.q.Close())
			until(6500 * time.Millisecond)
			start()
			until(20 * time.Second)
			perInterval := make(map[int]int)
			for _, s := range c.book.tickSeconds() {
				perInterval[s/2]++
			}
			for i := 1; i < 9; i++ {
				want := 1
				if i == 2 {
					want = 2 // cut short, and run again
				}
				require.Equal(t, want, perInterval[i], "runs of interval %d: %v", i, c.book.tickSeconds())
			}
			until(2 * time.Minute)
		})
	})
	for _, policy := range []scheduler.CatchUp{scheduler.CatchUpLatest, scheduler.CatchUpAll} {
		t.Run("that had queued, "+policy.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var victim *replica
				opts := []scheduler.Option{scheduler.WithCatchUp(time.Minute, policy), scheduler.WithDelivery(redlock.AtLeastOnce),
					scheduler.WithOverlap(scheduler.OverlapQueue)}
				add := func() {
					r := c.replica(opts...)
					r.add(t, tenSecondly, func(ctx context.Context) {
						run, _ := scheduler.RunFromContext(ctx)
						if run.Tick.Equal(at(10)) {
							nap(ctx, 14*time.Second)
						}
						if run.Tick.Equal(at(20)) && run.Attempt == 1 {
							victim = r
							<-ctx.Done()
							time.Sleep(time.Minute) // dead
						}
					})
					r.Start()
				}
				add()
				until(24500 * time.Millisecond)
				require.NotNil(t, victim, "the tick of 20 s is run at 24 s")
				require.NoError(t, victim.q.Close())
				until(25 * time.Second)
				add() // it looks for what was missed
				until(29500 * time.Millisecond)
				require.Equal(t, []int{10, 20, 20}, c.book.tickSeconds())
				until(2 * time.Minute)
			})
		})
	}
}
