//go:build long

package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A clock that is behind is said, once, and the ticks are as late.
func TestClockThatIsBehindIsSaid(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		log := new(journal)
		r := c.replica(quiet, scheduler.WithElection("jobs"), ahead(-2*time.Minute), scheduler.WithLogger(log.logger()))
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(at(180))
		run, begun := c.book.run(5)
		require.Equal(t, 2*time.Minute, begun.Sub(run.Due).Round(time.Second))
		require.Len(t, log.lines("level=WARN"), 1)
		require.Len(t, log.lines("clock is behind the nodes'"), 1)
		require.Equal(t, "clock_behind", redlock.ErrorType(r.Healthy()))
	})
}

// party is a replica whose conflicts are watched.
type party struct {
	*replica
	log  *journal
	told atomic.Int64
}

func (c *cluster) party(opts ...scheduler.Option) *party {
	p := &party{log: new(journal)}
	tracer := c.book.tracer()
	var last *scheduler.Conflict // of one job, of which one goroutine tells at a time
	tracer.Job = func(_ context.Context, data scheduler.JobTrace) {
		if data.Conflict != nil && data.Conflict != last {
			last = data.Conflict
			p.told.Add(1)
		}
	}
	p.replica = c.replica(append(opts, quiet, scheduler.WithLogger(p.log.logger()), scheduler.WithTracer(tracer))...)
	return p
}

// Replicas that differ in the zone or the schedule are told of, once each, and not before a rollout
// would be over.
func TestConflictIsTold(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, test := range []struct {
		name string
		a, b gocron.JobDefinition
		zone *time.Location
		task func()
	}{
		{"zone", gocron.CronJob("* 0-22 * * *", false), gocron.CronJob("* 0-22 * * *", false), berlin, func() {}},
		{"schedule", minutely, gocron.CronJob("*/2 * * * *", false), time.UTC, func() {}},
		{"interval, long runs", gocron.DurationJob(time.Minute), gocron.DurationJob(90 * time.Second), time.UTC, func() { time.Sleep(30 * time.Second) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a := c.party()
				a.add(t, test.a, test.task)
				a.Start()
				time.Sleep(2 * time.Second)
				b := c.party(scheduler.WithLocation(test.zone))
				b.add(t, test.b, test.task)
				b.Start()
				until(day(1, 0, 3, 30))
				require.Empty(t, append(a.Conflicts(), b.Conflicts()...), "it may be a rollout")
				until(day(1, 0, 8, 30))
				for _, p := range []*party{a, b} {
					found := p.Conflicts()
					require.Len(t, found, 1)
					require.Equal(t, "job", found[0].Job)
					require.NotEqual(t, found[0].Own, found[0].Other)
					require.Len(t, p.log.lines("is defined in another way too"), 1, "once")
					require.Contains(t, p.log.lines("is defined in another way too")[0], "level=WARN")
				}
				require.Greater(t, a.told.Load()+b.told.Load(), int64(3), "as long as it lasts")
			})
		})
	}
}

// A rollout of less than four minutes, and replicas that agree, are no conflict, and no tick is
// lost.
func TestRolloutIsNoConflict(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func(d gocron.JobDefinition) *party {
			p := c.party()
			p.add(t, d, func() {})
			p.Start()
			return p
		}
		version2 := gocron.CronJob("* * * * 0-5,6", false) // each minute, in other words
		parties := []*party{start(minutely), start(minutely)}
		until(day(1, 0, 10, 45))
		parties = append(parties, start(version2))
		until(day(1, 0, 12, 10))
		c.stop(parties[0].replica)
		parties = append(parties, start(version2))
		until(day(1, 0, 14, 10))
		c.stop(parties[1].replica)
		until(day(1, 0, 18, 30))
		for _, p := range parties {
			require.Empty(t, p.Conflicts())
			require.Zero(t, p.told.Load())
		}
		require.Len(t, c.book.ticks(), 18)
	})
}

// All replicas reload their configuration, and so update a job, around its tick.
func TestUpdateAtTheTick(t *testing.T) {
	for _, how := range []string{"Update", "RemoveJob, NewJob"} {
		t.Run(how, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var jobs []gocron.Job
				for range 3 {
					r := c.replica(quiet, jobOptions(within(time.Minute, scheduler.CatchUpAll)))
					jobs = append(jobs, r.add(t, tenSecondly, func() {}))
					r.Start()
				}
				for _, n := range c.fleet.Nodes() {
					n.SetDelay(2 * time.Millisecond)
				}
				for k := 1; k <= 8; k++ {
					until(at(10 * k).Add(time.Duration(k-4) * 80 * time.Millisecond))
					for i, r := range c.replicas {
						var err error
						if how == "Update" {
							jobs[i], err = r.Update(jobs[i].ID(), tenSecondly, gocron.NewTask(func() {}), gocron.WithName("job"))
							require.NoError(t, err)
							continue
						}
						require.NoError(t, r.RemoveJob(jobs[i].ID()))
						jobs[i] = r.add(t, tenSecondly, func() {})
					}
				}
				until(at(88))
				require.Len(t, c.book.seconds(), 8)
				require.IsIncreasing(t, c.book.seconds())
			})
		})
	}
}
