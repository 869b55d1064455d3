package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A run that a listener prevents leaves its tick to another replica.
func TestBeforeFuncThatFailsForgoesTheTick(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a, b := c.named("a", ahead(500*time.Millisecond)), c.named("b")
		refused := 0
		a.add(t, tenSecondly, func() { t.Error("ran on a") }, gocron.WithEventListeners(
			gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error { refused++; return errors.New("not here") })))
		b.add(t, tenSecondly, func() {})
		a.Start()
		b.Start()
		until(35 * time.Second)
		require.Equal(t, 3, refused)
		require.Equal(t, []int{10, 20, 30}, c.book.tickSeconds())
		require.Equal(t, map[scheduler.Reason]int{scheduler.SkipRefused: 3}, c.book.reasons())
		for _, skip := range c.book.skips {
			require.True(t, skip.Expected() && !skip.Pending, skip)
		}
	})
}

// A listener that refuses a run at least once is asked again after pauses that grow, and not as
// fast as the nodes answer. The first refusal is said.
func TestRefusedTickIsAskedForMoreSeldomEachTime(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.delay(time.Millisecond)
		log := new(journal)
		r := c.replica(scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll), scheduler.WithDelivery(redlock.AtLeastOnce), scheduler.WithLogger(log.logger()))
		var asked []int
		away := false
		r.add(t, tenSecondly, func() {}, gocron.WithEventListeners(
			gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error {
				if away && len(asked) < 100 {
					asked = append(asked, int(time.Since(at(0)).Seconds()))
					return errors.New("not now")
				}
				return nil
			})))
		r.Start()
		until(15 * time.Second)
		away = true
		until(60 * time.Second)
		require.Equal(t, []int{20, 21, 23, 27, 35, 51}, asked)
		require.Len(t, log.lines("level=WARN"), 1)
		require.Contains(t, log.lines("level=WARN")[0], "a listener refuses to run a job")
		require.Equal(t, 6, c.book.reasons()[scheduler.SkipRefused])
		away = false
		until(95 * time.Second)
		require.Equal(t, []int{10, 20, 30, 40, 50, 60, 70, 80, 90}, c.book.tickSeconds())
		away, asked = true, nil
		until(102 * time.Second)
		require.Equal(t, []int{100, 101}, asked, "refusals in a row are counted")
		require.Len(t, log.lines("level=WARN"), 2)
	})
}

func TestListeners(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var calls []string
		failed := errors.New("failed")
		r := c.replica()
		r.add(t, tenSecondly, func(ctx context.Context) error {
			switch run, _ := scheduler.RunFromContext(ctx); {
			case run.Tick.Equal(at(20)):
				return failed
			case run.Tick.Equal(at(30)):
				panic("ouch")
			}
			return nil
		}, gocron.WithEventListeners(
			gocron.BeforeJobRuns(func(_ uuid.UUID, name string) { calls = append(calls, "before "+name) }),
			gocron.AfterJobRuns(func(uuid.UUID, string) { calls = append(calls, "after") }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { calls = append(calls, err.Error()) }),
			gocron.AfterJobRunsWithPanic(func(_ uuid.UUID, _ string, value any) { calls = append(calls, value.(string)) }),
		))
		r.Start()
		until(45 * time.Second)
		require.Equal(t, []string{"before job", "after", "before job", "failed", "before job", "ouch", "gocron: panic recovered from ouch", "before job", "after"}, calls)
		require.Equal(t, []int{10, 20, 30, 40}, c.book.tickSeconds())
	})
}

// A run that panics is complete at most once, and run again at least once, on whatever replica,
// more slowly each time.
func TestPanic(t *testing.T) {
	for _, mode := range []struct {
		name     string
		replicas int
		opts     []scheduler.Option
		want     []int
	}{
		{"at most once", 2, []scheduler.Option{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest)}, []int{1}},
		{"at least once, one replica", 1, []scheduler.Option{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest), scheduler.WithDelivery(redlock.AtLeastOnce)}, []int{1, 2, 3, 4}},
		{"at least once, three replicas", 3, []scheduler.Option{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest), scheduler.WithDelivery(redlock.AtLeastOnce)}, []int{1, 2, 3, 4}},
		{"at least once, leader", 2, []scheduler.Option{scheduler.WithElection("jobs"), scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest), scheduler.WithDelivery(redlock.AtLeastOnce)}, []int{1, 2, 3, 4}},
	} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var attempts []int
				for range mode.replicas {
					r := c.replica(mode.opts...)
					r.add(t, gocron.CronJob("0 * * * * *", true), func(ctx context.Context) {
						run, _ := scheduler.RunFromContext(ctx)
						if attempts = append(attempts, run.Attempt); len(attempts) < 4 {
							panic("ouch")
						}
					}, gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {})))
					r.Start()
				}
				until(115 * time.Second)
				if mode.replicas > 2 {
					// What a run is told is what its quorum knows, and each may know of another
					// earlier one: see Lease.Attempt.
					require.Len(t, attempts, len(mode.want))
					require.Equal(t, 1, attempts[0])
					require.IsNonDecreasing(t, attempts)
				} else {
					require.Equal(t, mode.want, attempts)
				}
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

// gocron's limit of jobs that run at a time, on one replica, while another job has the only place.
func TestLimitConcurrentJobs(t *testing.T) {
	for _, test := range []struct {
		name    string
		mode    gocron.LimitMode
		catchUp scheduler.CatchUp
		want    []int
	}{
		// The other job has the place from 5 to 45 s.
		{"reschedule", gocron.LimitModeReschedule, scheduler.CatchUpNone, []int{50, 60}},
		{"reschedule, all", gocron.LimitModeReschedule, scheduler.CatchUpAll, []int{10, 20, 30, 40, 50, 60}},
		{"wait", gocron.LimitModeWait, scheduler.CatchUpNone, []int{40, 50, 60}},
		{"wait, all", gocron.LimitModeWait, scheduler.CatchUpAll, []int{10, 20, 30, 40, 50, 60}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica(scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, test.mode)), scheduler.WithCatchUp(5*time.Minute, test.catchUp))
				_, err := r.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(5))), scheduler.NewTask(func() { time.Sleep(40 * time.Second) }), gocron.WithName("other"))
				require.NoError(t, err)
				r.add(t, tenSecondly, func() {})
				r.Start()
				until(69 * time.Second)
				var got []int
				for _, run := range c.book.runs {
					if run.Job == "job" {
						got = append(got, int(run.Tick.Sub(at(0))/time.Second))
					}
				}
				require.Equal(t, test.want, got)
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

// limits is a gocron.SchedulerMonitor that counts how often gocron had no place.
type limits struct {
	delayed
	reached atomic.Int64
}

func (l *limits) ConcurrencyLimitReached(string, gocron.Job) { l.reached.Add(1) }

// A job that is not to be locked runs everywhere, and knows of no run.
func TestDisabledLocker(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var ran atomic.Int64
		var jobs []gocron.Job
		for range 3 {
			r := c.replica(scheduler.WithElection("jobs"))
			jobs = append(jobs, r.add(t, tenSecondly, func(ctx context.Context) {
				_, ok := scheduler.RunFromContext(ctx)
				require.False(t, ok)
				ran.Add(1)
			}, gocron.WithDisabledDistributedJobLocker(true)))
			r.Start()
		}
		until(25 * time.Second)
		require.EqualValues(t, 6, ran.Load())
		for _, j := range jobs {
			require.NoError(t, j.RunNow(), "also on followers")
		}
		until(26 * time.Second)
		require.EqualValues(t, 9, ran.Load())
		require.Empty(t, c.book.runs)
		require.Empty(t, c.book.skips)
	})
}

func TestStopAt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
		r.add(t, tenSecondly, func() {}, gocron.WithStartAt(gocron.WithStartDateTime(at(13))), gocron.WithStopAt(gocron.WithStopDateTime(at(35))))
		r.Start()
		until(55 * time.Second)
		require.Equal(t, []int{13, 20, 30}, c.book.tickSeconds())
	})
}

// everyFifth is a gocron.Cron of one's own: at 5, 15, 25 s and so on.
type everyFifth struct{}

func (everyFifth) IsValid(string, *time.Location, time.Time) error { return nil }

func (everyFifth) Next(after time.Time) time.Time {
	return after.Add(5 * time.Second).Truncate(10 * time.Second).Add(5 * time.Second)
}
