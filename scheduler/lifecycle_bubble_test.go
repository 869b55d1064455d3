package scheduler_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// modes are the two ways in which replicas share jobs.
var modes = []struct {
	name string
	opts []scheduler.Option
}{{"whoever gets it", nil}, {"on the leader", []scheduler.Option{scheduler.WithElection("jobs")}}}

// Start, StopJobs and Shutdown may be called again; what is healthy and what is refused follows
// them.
func TestStopAndStartAgain(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica(mode.opts...)
				j := r.add(t, tenSecondly, func() {})
				require.NoError(t, r.StopJobs(), "before the first Start")
				require.ErrorIs(t, r.Healthy(), scheduler.ErrNotRunning)
				require.Equal(t, "not_running", redlock.ErrorType(r.Healthy()))
				r.Start()
				r.Start()
				until(at(12))
				require.NoError(t, r.Healthy())
				require.NoError(t, r.StopJobs())
				require.NoError(t, r.StopJobs())
				require.ErrorIs(t, r.Healthy(), scheduler.ErrNotRunning)
				require.ErrorContains(t, j.RunNow(), "call Start")
				until(at(36))
				r.Start()
				until(at(37))
				require.NoError(t, r.Healthy())
				require.Equal(t, []int{10}, c.book.seconds(), "30 s is older than the grace")
				until(at(41))
				require.Equal(t, []int{10, 40}, c.book.seconds())
				c.freeze()
				until(at(60))
				require.ErrorIs(t, r.Healthy(), redlock.ErrNoQuorum)
				c.thaw()
				until(at(75))
				require.NoError(t, r.StopJobsWithContext(t.Context()))
				require.NoError(t, r.ShutdownWithContext(t.Context()))
				require.NoError(t, r.Shutdown())
				r.Start()
				until(at(85))
				require.ErrorIs(t, r.Healthy(), scheduler.ErrNotRunning)
				if mode.opts != nil {
					require.ErrorIs(t, r.Elector().IsLeader(t.Context()), elector.ErrNotLeader, "it could not run anything")
				}
				require.Empty(t, r.Jobs())
				made, err := r.NewJob(secondly, gocron.NewTask(func() {}), gocron.WithName("job"))
				require.Nil(t, made)
				require.ErrorIs(t, err, scheduler.ErrNotRunning)
				require.ErrorContains(t, err, "make another one with New")
				_, err = r.Update(j.ID(), secondly, gocron.NewTask(func() {}), gocron.WithName("job"))
				require.ErrorIs(t, err, scheduler.ErrNotRunning)
			})
		})
	}
}

// starts is a gocron.SchedulerMonitor that hears of no job. It may call what it hears of.
type starts struct {
	gocron.SchedulerMonitor
	of    *replica
	heard []string
}

func (s *starts) SchedulerStarted()  { s.heard = append(s.heard, "started"); s.of.Start() }
func (s *starts) SchedulerStopped()  { s.heard = append(s.heard, "stopped"); _ = s.of.StopJobs() }
func (s *starts) SchedulerShutdown() { s.heard = append(s.heard, "shutdown"); _ = s.of.Shutdown() }

// gocron's monitors hear of each Start and each stop, and under no lock.
func TestMonitorsHearOfStartAndStop(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		m := &starts{}
		m.of = c.replica(scheduler.WithGocron(gocron.WithSchedulerMonitor(m)))
		require.NoError(t, m.of.StopJobs())
		require.Empty(t, m.heard)
		m.of.Start()
		m.of.Start()
		require.NoError(t, m.of.StopJobs())
		m.of.Start()
		require.NoError(t, m.of.Shutdown())
		require.NoError(t, m.of.Shutdown())
		require.Equal(t, []string{"started", "stopped", "started", "stopped", "shutdown"}, m.heard)
	})
}

// Update, RemoveJob and RemoveByTags while a run goes on: it is told to end, and keeps its lease
// until it has.
func TestJobsThatAreTakenAwayWhileTheyRun(t *testing.T) {
	update := func(r *replica, id uuid.UUID, opts ...gocron.JobOption) error {
		_, err := r.Update(id, never, gocron.NewTask(func() {}), opts...)
		return err
	}
	for name, take := range map[string]func(r *replica, id uuid.UUID) error{
		"RemoveJob":    func(r *replica, id uuid.UUID) error { return r.RemoveJob(id) },
		"RemoveByTags": func(r *replica, _ uuid.UUID) error { r.RemoveByTags("x", "tag"); return nil },
		"Update":       func(r *replica, id uuid.UUID) error { return update(r, id, gocron.WithName("job")) },
		"Update with another name and identifier": func(r *replica, id uuid.UUID) error {
			return update(r, id, gocron.WithName("other"), gocron.WithIdentifier(uuid.New()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica()
				var held error
				j := r.add(t, tenSecondly, func(ctx context.Context) {
					<-ctx.Done()
					run, _ := scheduler.RunFromContext(ctx)
					time.Sleep(2 * ttl)
					held = run.Lease().Err()
				}, gocron.WithTags("tag"))
				r.Start()
				until(at(21))
				require.NoError(t, take(r, j.ID()))
				until(at(35))
				require.Equal(t, []int{10}, c.book.seconds())
				require.Len(t, c.book.ends.read(), 1)
				require.NoError(t, held)
			})
		})
	}
}

// A job that is removed while it is being made leaves its name to the next one.
func TestJobThatIsRemovedWhileItIsMade(t *testing.T) {
	id := uuid.New()
	for name, remove := range map[string]func(*replica){
		"RemoveJob":    func(r *replica) { _ = r.RemoveJob(id) },
		"RemoveByTags": func(r *replica) { r.RemoveByTags("tag") },
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica(quiet)
				for range 100 {
					var made atomic.Bool
					var removing sync.WaitGroup
					for range 3 {
						removing.Go(func() {
							for !made.Load() {
								remove(r)
							}
						})
					}
					_, err := r.NewJob(never, gocron.NewTask(func() {}), gocron.WithName("job"), gocron.WithTags("tag"), gocron.WithIdentifier(id))
					made.Store(true)
					removing.Wait()
					remove(r)
					require.NoError(t, err)
				}
			})
		})
	}
}

// A run that outlives the stop timeout is named, keeps its lease, and nobody else begins another;
// the replica may lead again meanwhile.
func TestTrap11ShutdownThatTimesOut(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var deaf atomic.Bool
				deaf.Store(true)
				for range 2 {
					r := c.replica(append(mode.opts, scheduler.WithStopTimeout(2*time.Second))...)
					r.add(t, tenSecondly, func() {
						if deaf.Swap(false) {
							time.Sleep(25 * time.Second)
						}
					})
					r.add(t, tenSecondly, func(ctx context.Context) { nap(ctx, 9*time.Second) }, gocron.WithName("obeys"))
					r.Start()
					time.Sleep(time.Second)
				}
				until(at(11))
				deafOne, _ := c.book.run(0)
				other, _ := c.book.run(1)
				require.True(t, deafOne.Due.Equal(at(10)) && other.Due.Equal(at(10)))
				if deafOne.Job != "job" {
					deafOne = other
				}
				r := c.holder(deafOne)
				err := r.StopJobs()
				require.ErrorIs(t, err, gocron.ErrStopJobsTimedOut)
				require.EqualError(t, err, `scheduler: still running: ["job"]: gocron: timed out waiting for jobs to finish`)
				r.Start()
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, io.EOF)
				defer cancel()
				err = r.StopJobsWithContext(ctx)
				require.ErrorIs(t, err, io.EOF)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				r.Start()
				until(at(34))
				ran := 0
				for i := range c.book.ticks() {
					if run, _ := c.book.run(i); run.Job == "job" {
						ran++
					}
				}
				require.Equal(t, 1, ran, "the run goes on, and holds its lease")
				require.NoError(t, deafOne.Lease().Err())
				until(at(41))
				require.Greater(t, len(c.book.ticks()), ran+1)
			})
		})
	}
}

// A job that is over stays so where nodes are restarted without their data, one after the other.
// One that is too old to begin anew is not kept: those with ever new names would pile up.
func TestJobThatIsOverIsRemembered(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		ran := 0
		for range 2 { // replicas
			q, err := redlock.Open(c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			defer q.Close()
			s := made(t, q, quiet, scheduler.WithLocation(time.UTC))
			_, err = s.NewJob(minutely, gocron.NewTask(func() { ran++ }), gocron.WithName("job"), gocron.WithLimitedRuns(1))
			require.NoError(t, err)
			_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(5))), gocron.NewTask(func() {}), gocron.WithName("once"))
			require.NoError(t, err)
			s.Start()
			time.Sleep(61 * time.Minute)
			for _, n := range c.fleet.Nodes() {
				require.NoError(t, n.Restart(false))
				time.Sleep(time.Minute)
				require.NotContains(t, n.Keys(), "tenure:{job/once}:register")
			}
		}
		require.Equal(t, 1, ran)
	})
}

// caller is foreign code of every kind. Each kind calls the library back, the first few times that
// it is called itself.
type caller struct {
	slog.Handler

	mu   sync.Mutex
	r    *replica       // guarded by mu
	went map[string]int // guarded by mu
	came map[string]int // guarded by mu; calls that have come back
}

func (c *caller) back(kind string) {
	c.mu.Lock()
	r, calls := c.r, c.r != nil && c.went[kind] < 2
	if calls {
		c.went[kind]++
	}
	name := fmt.Sprint(kind, " ", c.went[kind])
	c.mu.Unlock()
	if !calls {
		return
	}
	ctx := context.Background()
	_ = r.Healthy()
	r.q.Nodes(ctx)
	for _, j := range r.Jobs() {
		_, _ = j.NextRuns(2)
		_, _ = j.LastRunStartedAt()
		_ = j.Name()
	}
	for _, key := range []string{scheduler.KeyPrefix + "job", "other"} {
		_, _ = r.q.Holder(ctx, key)
	}
	l, _ := r.q.TryAcquire(ctx, "other")
	_ = l.Release(ctx)
	if j, err := r.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(func() {}), gocron.WithName(name)); err == nil {
		_ = r.RemoveJob(j.ID())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came[kind]++
}

func (c *caller) Enabled(context.Context, slog.Level) bool { return true }

func (c *caller) Handle(_ context.Context, r slog.Record) error {
	c.back("log: " + r.Message)
	return nil
}

// A logger, a tracer, a listener or a task that calls the library does not stop it, nor itself.
// (What gocron logs it logs on the goroutine that Jobs would ask.)
func TestForeignCodeCallsBack(t *testing.T) {
	call := &caller{Handler: slog.DiscardHandler, went: make(map[string]int), came: make(map[string]int)}
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithLogger(slog.New(call)), scheduler.WithElection("e"), scheduler.WithTracer(&scheduler.Tracer{
			Job:  func(context.Context, scheduler.JobTrace) { call.back("Job") },
			Tick: func(ctx context.Context, _ scheduler.TickTrace) context.Context { call.back("Tick"); return ctx },
			RunStart: func(ctx context.Context, _ scheduler.RunStartTrace) context.Context {
				call.back("RunStart")
				return ctx
			},
			RunEnd:  func(context.Context, scheduler.RunEndTrace) { call.back("RunEnd") },
			TraceID: func(context.Context) string { call.back("TraceID"); return "" },
			Skip:    func(context.Context, *scheduler.SkipError) { call.back("Skip") },
		}))
		call.mu.Lock()
		call.r = r
		call.mu.Unlock()
		fails := true
		r.add(t, minutely, func() error {
			call.back("the task")
			if fails = !fails; fails {
				return fmt.Errorf("every second run fails")
			}
			return nil
		}, gocron.WithEventListeners(
			gocron.BeforeJobRuns(func(uuid.UUID, string) { call.back("BeforeJobRuns") }),
			gocron.AfterJobRuns(func(uuid.UUID, string) { call.back("AfterJobRuns") }),
			gocron.AfterJobRunsWithError(func(uuid.UUID, string, error) { call.back("AfterJobRunsWithError") }),
		))
		r.Start()
		time.Sleep(5 * time.Minute)
		l, err := r.q.TryAcquire(t.Context(), scheduler.KeyPrefix+"job") // so that ticks are skipped
		require.NoError(t, err)
		time.Sleep(5 * time.Minute)
		require.NoError(t, l.Release(t.Context()))
		time.Sleep(5 * time.Minute)
	})
	call.mu.Lock()
	defer call.mu.Unlock()
	require.Equal(t, call.went, call.came)
	for _, kind := range []string{"Job", "Tick", "RunStart", "RunEnd", "TraceID", "Skip", "the task", "BeforeJobRuns", "AfterJobRuns", "AfterJobRunsWithError", "log: scheduler: the task failed"} {
		assert.NotZero(t, call.came[kind], "%s was not called", kind)
	}
}
