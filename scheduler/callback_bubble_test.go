package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

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
