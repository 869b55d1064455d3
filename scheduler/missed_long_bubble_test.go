//go:build long

package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// A schedule is new after an update or a deploy: its ticks of before were never due, however far
// back the catch-up window goes.
func TestNewScheduleHasMissedNothing(t *testing.T) {
	for _, deploy := range []bool{false, true} {
		t.Run(fmt.Sprint("by a deploy: ", deploy), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				start := func(crontab string) (*replica, gocron.Job) {
					r := c.replica(scheduler.WithCatchUp(24*time.Hour, scheduler.CatchUpAll))
					j := r.add(t, gocron.CronJob(crontab, false), func() {})
					r.Start()
					return r, j
				}
				r, j := start("*/10 * * * *")
				until(18*time.Minute + 30*time.Second)
				require.Len(t, c.book.runs, 1)
				const minutely = "* * * * *"
				if deploy {
					require.NoError(t, r.Shutdown())
					r, _ = start(minutely)
				} else {
					_, err := r.Update(j.ID(), gocron.CronJob(minutely, false), scheduler.NewTask(func() {}), gocron.WithName("job"))
					require.NoError(t, err)
				}
				pass(5 * time.Second)
				require.Len(t, c.book.runs, 1, "no tick has come since")
				until(20*time.Minute + 30*time.Second)
				require.Len(t, c.book.runs, 3)
				require.NoError(t, r.Shutdown())
				until(22*time.Minute + 30*time.Second)
				start(minutely)
				pass(5 * time.Second)
				require.Len(t, c.book.runs, 5, "what is missed later is caught up")
			})
		})
	}
}

// A replica that is granted a tick while earlier ones are missing gives it back and runs them
// first.
func TestTickDoesNotOvertakeMissedOnes(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		first := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
		first.add(t, tenSecondly, func() {})
		first.Start()
		until(25 * time.Second)
		require.NoError(t, first.Shutdown())
		second := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
		second.add(t, tenSecondly, func() {})
		c.freeze(0, 1, 2)
		until(51 * time.Second)
		second.Start() // and cannot ask the nodes what was missed
		until(60*time.Second - time.Millisecond)
		c.thaw(0, 1, 2)
		until(75 * time.Second)
		require.Equal(t, []int{10, 20, 30, 40, 50, 60, 70}, c.book.tickSeconds())
	})
}

// A tick that comes while an earlier one is run late waits for it.
func TestTickBehindALateRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func() *replica {
			r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), ahead(800*time.Millisecond))
			r.add(t, tenSecondly, func() { time.Sleep(2 * time.Second) })
			r.Start()
			return r
		}
		r := start()
		until(15 * time.Second)
		require.NoError(t, r.Shutdown())
		until(29500 * time.Millisecond) // by its clock the tick of 30 s has come
		start()
		until(45 * time.Second)
		require.Equal(t, []int{10, 20, 30, 40}, c.book.tickSeconds())
	})
}

// A key that something else wrote is no run: the tick is run when it is gone.
func TestTickBehindAForeignKeyIsRunLate(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(15 * time.Second)
		for _, n := range c.fleet.Nodes() {
			set(t, n, "tenure:{job/job}", "x")
		}
		until(22 * time.Second)
		require.Equal(t, []int{10}, c.book.tickSeconds())
		for _, n := range c.fleet.Nodes() {
			do(t, n, "DEL", "tenure:{job/job}")
		}
		until(29 * time.Second)
		require.Equal(t, []int{10, 20}, c.book.tickSeconds())
	})
}

// A tick that comes in the moment in which a waiting one is run is not lost between the two.
func TestTickAtTheMomentOfAnother(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for range 3 {
			r := c.replica(scheduler.WithOverlap(scheduler.OverlapQueue))
			r.add(t, secondly, func() { time.Sleep(time.Second) }) // until the next tick
			r.Start()
		}
		until(2 * time.Minute)
		require.Zero(t, c.book.reasons()[scheduler.SkipOther])
		require.GreaterOrEqual(t, len(c.book.tickSeconds()), 110)
	})
}

// While the lease of a replica that died runs out, ticks come. They look overlapped by its run, and
// were missed.
func TestTicksBehindADeadReplicaAreMissed(t *testing.T) {
	for _, test := range []struct {
		policy scheduler.CatchUp
		every  string
		want   []int
	}{
		{scheduler.CatchUpAll, "* * * * * *", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{scheduler.CatchUpAll, "*/3 * * * * *", []int{3, 6, 9}},
		{scheduler.CatchUpLatest, "*/3 * * * * *", []int{3, 6, 9}},
		{scheduler.CatchUpNone, "*/3 * * * * *", []int{3, 9}},
	} {
		t.Run(test.policy.String()+" "+test.every, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var victim *replica
				for range 3 {
					r := c.replica(scheduler.WithCatchUp(time.Minute, test.policy))
					r.add(t, gocron.CronJob(test.every, true), func(ctx context.Context) {
						if run, _ := scheduler.RunFromContext(ctx); run.Tick.Equal(at(3)) {
							victim = r
							<-ctx.Done()
							time.Sleep(30 * time.Second) // dead
						}
					})
					r.Start()
				}
				until(3200 * time.Millisecond)
				require.NoError(t, victim.q.Close())
				until(10500 * time.Millisecond)
				assert.Equal(t, test.want, c.book.tickSeconds())
				until(time.Minute)
			})
		})
	}
}
