//go:build long

package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// typedError is an error with a type of its own for operators.
type typedError struct{}

func (typedError) Error() string     { return "password=secret" }
func (typedError) ErrorType() string { return "full" }

// brokenError panics when it is asked for its text, as a nil pointer in an error does.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

//go:noinline
func outOfRange(of []error, i int) error { return of[i] }

// How a run ended is told in the outcome, and an error by its type, or by its text where somebody
// wants that.
func TestOutcomesOfRunsAreTold(t *testing.T) {
	secret := errors.New("password=secret" + strings.Repeat("x", 1000))
	type task = func(ctx context.Context, c *cluster) error
	for _, test := range []struct {
		name  string
		texts bool
		admin.Outcome
		err  string
		task task
	}{
		{"ok", false, admin.OutcomeOK, "", func(context.Context, *cluster) error { return nil }},
		{"failed", false, admin.OutcomeFailed, "*errors.errorString", func(context.Context, *cluster) error { return secret }},
		{"text", true, admin.OutcomeFailed, secret.Error()[:256], func(context.Context, *cluster) error { return secret }},
		{"wrapped", false, admin.OutcomeFailed, "*errors.errorString", func(context.Context, *cluster) error { return fmt.Errorf("it: %w", secret) }},
		{"typed", false, admin.OutcomeFailed, "full", func(context.Context, *cluster) error { return typedError{} }},
		{"broken", true, admin.OutcomeFailed, "*scheduler_test.brokenError", func(context.Context, *cluster) error { return (*brokenError)(nil) }},
		{"panicked", false, admin.OutcomePanicked, "panic", func(context.Context, *cluster) error { panic(secret) }},
		{"panicked, with its place", true, admin.OutcomePanicked, `scheduler: job "job": panic: runtime error: index out of range [3] with length 2, in scheduler_test.outOfRange (told_long_bubble_test.go:`,
			func(context.Context, *cluster) error { return outOfRange([]error{nil, nil}, 3) }},
		{"stopped", false, admin.OutcomeStopped, "canceled", func(ctx context.Context, c *cluster) error {
			go c.replicas[0].StopJobs()
			<-ctx.Done()
			return ctx.Err()
		}},
		{"lost", false, admin.OutcomeLost, "lost_deadline", func(ctx context.Context, c *cluster) error {
			c.freeze()
			<-ctx.Done()
			c.thaw()
			return context.Cause(ctx)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				type traceKey struct{}
				tracer := c.book.tracer()
				start := tracer.RunStart
				tracer.RunStart = func(ctx context.Context, data scheduler.RunStartTrace) context.Context {
					return context.WithValue(start(ctx, data), traceKey{}, "the trace")
				}
				tracer.TraceID = func(ctx context.Context) string { return ctx.Value(traceKey{}).(string) }
				r := c.named("a", scheduler.WithTelling(scheduler.Telling{ErrorTexts: test.texts}), scheduler.WithTracer(tracer)).with(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(10))), func(ctx context.Context) error {
					time.Sleep(1500 * time.Millisecond)
					return test.task(ctx, c)
				})
				until(at(20))
				runs, err := c.operator().Runs(t.Context(), "job", 20)
				require.NoError(t, err)
				require.Len(t, runs, 1)
				got := runs[0]
				require.Equal(t, test.Outcome, got.Outcome)
				require.Equal(t, test.Outcome != admin.OutcomeOK && test.Outcome != admin.OutcomeStopped, got.Failed())
				if test.texts && test.Outcome == admin.OutcomePanicked {
					require.Contains(t, got.Error, test.err)
					require.Regexp(t, `\(told_long_bubble_test\.go:\d+\), in scheduler_test\..*\(told_long_bubble_test\.go:\d+\)`, got.Error)
				} else {
					require.Equal(t, test.err, got.Error)
				}
				run, _ := c.book.run(0)
				require.Equal(t, []any{"a", 1, "on_time", run.FencingToken(), "the trace", ""}, []any{got.Replica, got.Attempt, got.Why, got.FencingToken, got.TraceID, got.Order})
				require.WithinDuration(t, at(10), got.Tick, 0)
				require.WithinDuration(t, at(10), got.Began, 50*time.Millisecond)
				if test.Outcome != admin.OutcomeLost {
					require.InDelta(t, 1500*time.Millisecond, got.Took, float64(time.Millisecond))
				}
				_, err = r.q.Holder(t.Context(), scheduler.KeyPrefix+"job")
				require.ErrorIs(t, err, redlock.ErrNotHeld)
			})
		})
	}
}

// A job that is over is not late, and not overdue. A replica that does not lead tells of no tick
// of a job that may be over, nor by when it should have succeeded.
func TestJobThatIsOverForTheLeader(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for _, name := range []string{"a", "b"} {
			r := c.named(name, scheduler.WithElection("jobs"))
			r.add(t, minutely, func() {}, gocron.WithLimitedRuns(2), scheduler.WithSucceedWithin(3*time.Minute))
			r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(20))), func() {}, gocron.WithName("once"), scheduler.WithSucceedWithin(time.Minute))
			r.Start()
		}
		a := c.operator()
		for minute := range 30 {
			until(at(30 + 60*minute))
			for _, name := range []string{"job", "once"} {
				job, err := a.Job(t.Context(), name)
				require.NoError(t, err)
				require.False(t, job.Late || job.Overdue, "%s, %d", name, minute)
			}
		}
	})
}

// A replica's card says which jobs it has and what it runs; a job's says what it is and when it is
// due, and is told again before it expires.
func TestJobsAndRunsAreTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		r := c.named("a", scheduler.WithElection("jobs"), jobOptions(within(time.Hour, scheduler.CatchUpLatest), scheduler.WithOverlap(scheduler.OverlapQueue), scheduler.WithRunbook("https://x/y")))
		r.add(t, gocron.CronJob("CRON_TZ=Europe/Berlin */2 * * * *", false), func() { time.Sleep(20 * time.Second) })
		r.add(t, gocron.DurationJob(7*time.Minute), func() {}, gocron.WithName("every"))
		r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(20))), func() {}, gocron.WithName("once"))
		r.add(t, tenSecondly, func() {}, gocron.WithLimitedRuns(2), gocron.WithName("twice"))
		r.add(t, minutely, func() {}, everywhere, gocron.WithName("everywhere"))
		replicas := func() []admin.Replica {
			all, err := a.Replicas(t.Context())
			require.NoError(t, err)
			return slices.DeleteFunc(all, func(r admin.Replica) bool { return r.Identity == "operator" })
		}
		require.Empty(t, replicas(), "before Start")
		r.Start()
		is := func(name string) admin.JobStatus {
			t.Helper()
			j, err := a.Job(t.Context(), name)
			require.NoError(t, err, name)
			return j
		}
		until(at(2))
		job := is("job")
		require.Equal(t, []string{"Europe/Berlin", "jobs", "at most once", "latest", "queue"}, []string{job.Zone, job.Election, job.Delivery, job.CatchUp, job.Overlap})
		require.Equal(t, []any{time.Hour, "https://x/y"}, []any{job.Window, job.Runbook})
		require.Contains(t, job.Schedule, "*/2 * * * *")
		require.True(t, job.Orders)
		require.WithinDuration(t, at(120), job.Next, 0)
		require.Contains(t, is("every").Schedule, "7m")
		require.WithinDuration(t, at(420), is("every").Next, 5*time.Second)
		require.WithinDuration(t, at(20), is("once").Next, 0)
		_, err := a.Job(t.Context(), "everywhere")
		require.ErrorIs(t, err, admin.ErrNoJob)
		until(at(135))
		require.Len(t, replicas(), 1)
		require.Equal(t, []string{"every", "everywhere", "job"}, replicas()[0].Jobs, "once and twice are over")
		require.False(t, is("once").Late || is("twice").Late, "nothing comes next")
		require.Len(t, replicas()[0].Running, 1)
		run, err := a.Running(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, run.ID(), replicas()[0].Running[0].ID())
		require.WithinDuration(t, at(120), replicas()[0].Running[0].Tick, 0)
		require.WithinDuration(t, at(240), is("job").Next, 0, "told again with its run")
		until(at(165))
		require.Empty(t, replicas()[0].Running)
		require.NoError(t, r.StopJobs())
		until(at(166))
		require.Empty(t, replicas())
	})
}

// What is switched off is not told or taken, by the jobs and by the election, and all else is.
func TestTelling(t *testing.T) {
	type is struct{ replica, job, runs, skips, terms, order bool }
	for name, test := range map[string]struct {
		telling scheduler.Telling
		want    is
	}{
		"all":        {scheduler.Telling{}, is{true, true, true, true, true, true}},
		"no card":    {scheduler.Telling{NoCard: true}, is{runs: true, terms: true, order: true}},
		"no history": {scheduler.Telling{NoHistory: true}, is{replica: true, job: true, order: true}},
		"no orders":  {scheduler.Telling{NoOrders: true}, is{true, true, true, true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a := c.operator(admin.WithOrderTimeout(2 * time.Second))
				c.named("a", scheduler.WithElection("jobs"), scheduler.WithTelling(test.telling)).with(t, tenSecondly, func() {})
				until(at(15))
				_, err := a.RunNow(t.Context(), "job", "")
				got := is{order: err == nil}
				c.setPause(jobKey, "ann")
				until(at(45))
				replicas, err := a.Replicas(t.Context())
				require.NoError(t, err)
				for _, of := range replicas {
					got.replica = got.replica || of.Identity == "a" && len(of.Jobs) > 0
				}
				_, err = a.Job(t.Context(), "job")
				got.job = err == nil
				runs, err := a.Runs(t.Context(), "job", 20)
				require.NoError(t, err)
				got.runs = len(runs) > 0
				skips, err := a.Skips(t.Context(), "job", 20)
				require.NoError(t, err)
				if got.skips = len(skips) > 0; got.skips {
					require.Equal(t, []any{"paused", "a", "ann"}, []any{skips[0].Reason, skips[0].Replica, skips[0].By})
					require.Contains(t, []int{2, 3}, skips[0].Count)
				}
				e, err := a.Election(t.Context(), "jobs")
				require.NoError(t, err)
				got.terms = len(e.Terms) > 0
				require.Equal(t, test.want, got)
			})
		})
	}
}

// To tell the end of a run costs each node one command.
func TestEndOfARunCostsOneCommand(t *testing.T) {
	commands := make(map[bool]int)
	for _, silent := range []bool{false, true} {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.named("a", scheduler.WithTelling(scheduler.Telling{NoCard: true, NoOrders: true, NoHistory: silent})).with(t, tenSecondly, func() { time.Sleep(20 * time.Millisecond) }) // all nodes have answered by then
			sum := func() (sum int) {
				for _, n := range c.fleet.Nodes() {
					sum += n.Commands()
				}
				return sum
			}
			least := math.MaxInt
			for tick := 20; tick <= 60; tick += 10 { // something else may fall into some of them
				until(at(tick).Add(-500 * time.Millisecond))
				before := sum()
				until(at(tick).Add(100 * time.Millisecond))
				least = min(least, sum()-before)
			}
			commands[silent] = least
		})
	}
	require.Equal(t, commands[true]+3, commands[false])
	require.LessOrEqual(t, commands[false], 3*6)
}

// A clock that is behind is said, once, and the ticks are as late.
func TestClockThatIsBehindIsSaid(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		log := new(journal)
		r := c.runs(tenSecondly, func() {}, quiet, scheduler.WithElection("jobs"), ahead(-2*time.Minute), scheduler.WithLogger(log.logger()))
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

// Rollouts that are taken back one after the other, as canaries are, leave no replica that waits
// longer each time.
func TestCanariesOneAfterTheOther(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.runs(gocron.DurationRandomJob(time.Minute, time.Minute+time.Second), func() {}, quiet)
		for _, minute := range []int{1, 23, 45} {
			until(day(1, 0, minute, 0))
			canary := c.runs(gocron.CronJob("0 12 * * *", false), func() {}, quiet)
			until(day(1, 0, minute+6, 0))
			c.stop(canary)
		}
		n := len(c.book.ticks())
		until(day(1, 0, 56, 0))
		require.GreaterOrEqual(t, len(c.book.ticks())-n, 3)
	})
}

// Replicas of two versions that begin one after the other write nothing back: the time does not
// double.
func TestRestartsOfTwoVersions(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		random, other := gocron.DurationRandomJob(time.Minute, time.Minute+time.Second), gocron.CronJob("0 12 * * *", false)
		c.runs(random, func() {}, quiet)
		for _, minute := range []int{1, 3, 5} {
			c.life(day(1, 0, minute, 0), day(1, 0, minute+1, 0), other)
			c.life(day(1, 0, minute+1, 0), day(1, 0, minute+1, 30), random)
		}
		c.life(day(1, 0, 7, 0), day(1, 0, 8, 0), other)
		until(day(1, 0, 12, 0))
		n := len(c.book.ticks())
		until(day(1, 0, 17, 0))
		require.GreaterOrEqual(t, len(c.book.ticks())-n, 3)
	})
}

// The time doubles for all replicas of a definition, not for the one alone that writes it back.
func TestManyReplicasOfTwoDefinitions(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for _, d := range []gocron.JobDefinition{minutely, everyTwo} {
			for range 3 {
				c.runs(d, func() {}, quiet)
				time.Sleep(10 * time.Second)
			}
		}
		require.LessOrEqual(t, c.definitions(day(1, 0, 24, 0)), 4, "after 4, 4 and 8 minutes")
	})
}

// Acceptance 15: replicas that differ in the zone or the schedule are told of, once each, and not
// before a rollout would be over.
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
		{"schedule", minutely, everyTwo, time.UTC, func() {}},
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

// A task, a listener or a tracer may call its own Scheduler.
func TestSelfCalls(t *testing.T) {
	calls := map[string]func(r *replica, j gocron.Job){
		"RemoveJob": func(r *replica, j gocron.Job) { _ = r.RemoveJob(j.ID()) },
		"StopJobs":  func(r *replica, _ gocron.Job) { _ = r.StopJobs() },
		"Shutdown":  func(r *replica, _ gocron.Job) { _ = r.Shutdown() },
		"RunNow":    func(_ *replica, j gocron.Job) { _ = j.RunNow() },
		"Update": func(r *replica, j gocron.Job) {
			_, _ = r.Update(j.ID(), tenSecondly, gocron.NewTask(func() {}), gocron.WithName("job"))
		},
		"Jobs": func(r *replica, _ gocron.Job) {
			for _, j := range r.Jobs() {
				_, _ = j.NextRun()
				_, _ = j.LastRunStartedAt()
			}
		},
	}
	for from := range map[string]bool{"task": true, "listener": true, "tracer": true} {
		for name, call := range calls {
			t.Run(name+" in a "+from, func(t *testing.T) {
				inCluster(t, func(t *testing.T, c *cluster) {
					var r *replica
					var job gocron.Job
					var called, returned atomic.Int64
					do := func() {
						if called.Add(1) == 1 {
							call(r, job)
							returned.Add(1)
						}
					}
					opts, task, listen := []scheduler.Option{scheduler.WithStopTimeout(3 * time.Second)}, func() {}, gocron.WithTags("none")
					switch from {
					case "task":
						task = do
					case "listener":
						listen = gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { do() }))
					case "tracer":
						opts = append(opts, scheduler.WithTracer(&scheduler.Tracer{RunStart: func(ctx context.Context, _ scheduler.RunStartTrace) context.Context {
							do()
							return ctx
						}}))
					}
					r = c.replica(append(opts, quiet)...)
					job = r.add(t, tenSecondly, task, listen)
					r.Start()
					until(at(35))
					require.EqualValues(t, 1, returned.Load())
					if name == "RunNow" || name == "Jobs" {
						require.Greater(t, called.Load(), int64(2), "the job lives")
					}
				})
			})
		}
	}
}
