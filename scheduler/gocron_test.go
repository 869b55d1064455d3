package scheduler_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// everySecond is when the jobs of three replicas on one clock are due at the same moment.
var everySecond = gocron.CronJob("* * * * * *", true)

// ledger counts the runs of each tick.
type ledger struct {
	mu   sync.Mutex
	runs map[int64]int // by unix second; guarded by mu
}

// record is the task. A tick is the second in which it runs; its timer may fire a little early by
// the wall clock.
func (l *ledger) record() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[time.Now().Add(50*time.Millisecond).Unix()]++
}

func (l *ledger) ticks() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs)
}

func newScheduler(t *testing.T, opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
	return s
}

func newJob(t *testing.T, s gocron.Scheduler, when gocron.JobDefinition, task any, opts ...gocron.JobOption) {
	t.Helper()
	_, err := s.NewJob(when, gocron.NewTask(task), append(opts, gocron.WithName("instant"))...)
	require.NoError(t, err)
}

func TestShutdownFreesTheLeaseOfARunningJob(t *testing.T) {
	q := open(t, valkeytest.Start(t, 3).URLs())
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(newLocker(t, q)))
	require.NoError(t, err)
	running := make(chan struct{})
	newJob(t, s, gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), func(ctx context.Context) {
		close(running)
		<-ctx.Done()
	})
	s.Start()
	<-running
	_, err = q.Holder(t.Context(), "job/instant")
	require.NoError(t, err)
	require.NoError(t, s.Shutdown())
	_, err = q.Holder(t.Context(), "job/instant")
	require.ErrorIs(t, err, redlock.ErrNotHeld)
}

// leader is a gocron.Elector that always leads.
type leader struct{}

func (leader) IsLeader(context.Context) error { return nil }

// forbidden is a gocron.Locker that must not be asked.
type forbidden struct{ t *testing.T }

func (f forbidden) Lock(_ context.Context, name string) (gocron.Lock, error) {
	f.t.Errorf("gocron asked the locker for %q although it has an elector: adjust the package documentation", name)
	return nil, fmt.Errorf("scheduler: forbidden")
}

// The package documentation warns of this; the test tells when a later gocron behaves differently.
func TestTrap01ElectorDisablesLockers(t *testing.T) {
	s := newScheduler(t, gocron.WithDistributedElector(leader{}), gocron.WithDistributedLocker(forbidden{t}))
	ran := make(chan struct{})
	newJob(t, s, gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), func() { close(ran) },
		gocron.WithDistributedJobLocker(forbidden{t}))
	s.Start()
	<-ran
}
