package scheduler_test

import (
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// delayed is a gocron.SchedulerMonitor that keeps what gocron says of delays.
type delayed struct {
	gocron.SchedulerMonitor
	delays []time.Duration
}

func (*delayed) SchedulerStarted()                          {}
func (*delayed) SchedulerStopped()                          {}
func (*delayed) SchedulerShutdown()                         {}
func (*delayed) JobRegistered(gocron.Job)                   {}
func (*delayed) JobUnregistered(gocron.Job)                 {}
func (*delayed) JobStarted(gocron.Job)                      {}
func (*delayed) JobRunning(gocron.Job)                      {}
func (*delayed) JobCompleted(gocron.Job)                    {}
func (*delayed) JobFailed(gocron.Job, error)                {}
func (*delayed) JobExecutionTime(gocron.Job, time.Duration) {}
func (*delayed) ConcurrencyLimitReached(string, gocron.Job) {}
func (m *delayed) JobSchedulingDelay(_ gocron.Job, scheduled, started time.Time) {
	m.delays = append(m.delays, started.Sub(scheduled))
}

// A follower's list of ticks does not grow, and its first run as leader is not late.
func TestTrap05FollowerKeepsNoTicks(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		tr := &delays{book: c.book}
		monitor := &delayed{}
		leader := c.replica(scheduler.WithElection("jobs"))
		leader.add(t, tenSecondly, func() {})
		leader.Start()
		time.Sleep(time.Second)
		follower := c.replica(scheduler.WithElection("jobs"), scheduler.WithTracer(tr), scheduler.WithGocron(gocron.WithSchedulerMonitor(monitor)))
		j := follower.add(t, tenSecondly, func() {})
		follower.Start()
		until(305 * time.Second)
		next, err := j.NextRuns(1)
		require.NoError(t, err)
		require.True(t, next[0].Equal(at(310)), "%v", next)
		require.NoError(t, leader.Shutdown())
		until(325 * time.Second)
		require.Len(t, tr.started, 2)
		require.Less(t, tr.started[0].Delay, time.Second)
		require.NotEmpty(t, monitor.delays)
		require.Less(t, monitor.delays[0], time.Second)
	})
}

// statuses is a gocron.MonitorStatus.
type statuses struct {
	mu       sync.Mutex
	counted  []gocron.JobStatus // guarded by mu
	timed    []gocron.JobStatus // guarded by mu
	unstated int                // guarded by mu
}

func (s *statuses) IncrementJob(_ uuid.UUID, _ string, _ []string, status gocron.JobStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted = append(s.counted, status)
}

func (s *statuses) RecordJobTiming(_, _ time.Time, _ uuid.UUID, _ string, _ []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unstated++
}

func (s *statuses) RecordJobTimingWithStatus(_, _ time.Time, _ uuid.UUID, _ string, _ []string, status gocron.JobStatus, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timed = append(s.timed, status)
}

// WithMonitorStatus alone counts nothing; both options reach gocron through WithGocron, and skips
// are counted too.
func TestTrap06MonitorStatusCountsOnlyBesideMonitor(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		alone, both := &statuses{}, &statuses{}
		first := c.replica(ahead(100*time.Millisecond), scheduler.WithGocron(gocron.WithMonitorStatus(alone)))
		second := c.replica(scheduler.WithGocron(gocron.WithMonitor(both), gocron.WithMonitorStatus(both)))
		for _, r := range []*replica{first, second} {
			r.add(t, tenSecondly, func() {})
			r.Start()
		}
		until(15 * time.Second)
		require.NoError(t, first.Shutdown())
		until(25 * time.Second)
		require.Empty(t, alone.counted)
		require.Equal(t, []gocron.JobStatus{gocron.Success}, alone.timed)
		require.Equal(t, []gocron.JobStatus{gocron.Skip, gocron.Success}, both.counted)
		require.Equal(t, []gocron.JobStatus{gocron.Success}, both.timed)
		require.Equal(t, 1, both.unstated)
	})
}

// stalling is a gocron.SchedulerMonitor that stalls gocron's loop.
type stalling struct {
	delayed
	stalled time.Duration
}

func (m *stalling) JobUnregistered(j gocron.Job) {
	began := time.Now()
	_, _ = j.NextRun()
	m.stalled = time.Since(began)
}

// A monitor that stalls gocron's loop for a second costs no tick.
func TestTrap13StalledLoopLosesNoTick(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		monitor := &stalling{}
		r := c.replica(scheduler.WithGocron(gocron.WithSchedulerMonitor(monitor)))
		other, err := r.NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName("other"))
		require.NoError(t, err)
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(9800 * time.Millisecond)
		require.NoError(t, r.RemoveJob(other.ID()))
		require.Equal(t, time.Second, monitor.stalled)
		until(25 * time.Second)
		var got []int
		for _, run := range c.book.runs {
			if run.Job == "job" {
				got = append(got, int(run.Tick.Sub(at(0))/time.Second))
			}
		}
		require.Equal(t, []int{10, 20}, got)
	})
}
