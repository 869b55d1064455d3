package scheduler_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// told returns an option with a listener, and what it was told.
func told() (gocron.JobOption, *[]error) {
	var mu sync.Mutex // it may be given to several replicas
	var errs []error
	return gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	})), &errs
}

// nap sleeps for d, or until ctx ends.
func nap(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// named makes a replica with an identity.
func (c *cluster) named(name string, opts ...scheduler.Option) *replica {
	c.t.Helper()
	return c.replica(append(opts, scheduler.WithLeaseOptions(redlock.WithIdentity(name)))...)
}

// requireSkip requires that the last of errs is a *SkipError for these reasons, and that the tracer
// was told of the same.
func (c *cluster) requireSkip(errs []error, want scheduler.SkipError, cause error) *scheduler.SkipError {
	c.t.Helper()
	require.NotEmpty(c.t, errs)
	var got *scheduler.SkipError
	require.ErrorAs(c.t, errs[len(errs)-1], &got)
	require.Equal(c.t, "job", got.Job)
	require.True(c.t, want.Tick.Equal(got.Tick), "tick %v", got.Tick)
	require.Equal(c.t, want.Reason, got.Reason, got.Error())
	require.Equal(c.t, want.By, got.By)
	require.Equal(c.t, want.Pending, got.Pending)
	require.ErrorIs(c.t, got, cause)
	require.Equal(c.t, string(want.Reason), redlock.ErrorType(got))
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	require.Contains(c.t, c.book.skips, got)
	return got
}

func TestSkipHeldAndOverlapAndDone(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a, b, late := c.named("a", ahead(100*time.Millisecond)), c.named("b"), c.named("late", ahead(-900*time.Millisecond))
		ofB, errsB := told()
		ofLate, errsLate := told()
		a.add(t, tenSecondly, func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Tick.Equal(at(20)) {
				nap(ctx, 15*time.Second)
			}
			nap(ctx, 500*time.Millisecond)
		})
		b.add(t, tenSecondly, func() {}, ofB)
		late.add(t, tenSecondly, func() {}, ofLate)
		for _, r := range []*replica{a, b, late} {
			r.Start()
		}
		until(12 * time.Second)
		e := c.requireSkip(*errsB, scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipHeld, By: "a"}, redlock.ErrHeld)
		require.ErrorContains(t, e, `scheduler: job "job", tick 2000-01-01T00:00:10Z is skipped: held by a: redlock: `)
		e = c.requireSkip(*errsLate, scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipDone, By: "a"}, redlock.ErrDone)
		require.ErrorContains(t, e, `is skipped: done by a: redlock: sequence 946684810000 of "job/job" was completed`)
		until(30500 * time.Millisecond)
		c.requireSkip(*errsB, scheduler.SkipError{Tick: at(30), Reason: scheduler.SkipOverlap, By: "a"}, redlock.ErrHeld)
	})
}

// A replica whose clock is ahead of the nodes' is told so.
func TestSkipOfATickThatIsAhead(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.named("a", ahead(time.Minute))
		listen, errs := told()
		a.add(t, tenSecondly, func() {}, listen)
		a.Start()
		until(15 * time.Second)
		skip := c.requireSkip(*errs, scheduler.SkipError{Tick: at(70), Reason: scheduler.SkipAhead}, (*errs)[len(*errs)-1].(*scheduler.SkipError).Err)
		require.ErrorContains(t, skip, "this machine's clock is 59.99")
		require.False(t, skip.Expected())
	})
}

// The page has every reason.
func TestSkipReasonsAreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/scheduling.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| reason | means |")
	require.True(t, found)
	for _, r := range []scheduler.Reason{scheduler.SkipHeld, scheduler.SkipDone, scheduler.SkipOverlap, scheduler.SkipNotLeader, scheduler.SkipQuarantined, scheduler.SkipNoQuorum,
		scheduler.SkipTimeout, scheduler.SkipPaused, scheduler.SkipRefused, scheduler.SkipAhead, scheduler.SkipSplit, scheduler.SkipSuperseded, scheduler.SkipMissed, scheduler.SkipStopped, scheduler.SkipOther} {
		require.Contains(t, table, "`"+string(r)+"`")
	}
}

func TestSkipPending(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		opts := []scheduler.Option{scheduler.WithOverlap(scheduler.OverlapQueue), scheduler.WithDelivery(redlock.AtLeastOnce),
			scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest)}
		a, b := c.named("a", append(opts, ahead(100*time.Millisecond))...), c.named("b", opts...)
		listen, errs := told()
		task := func(ctx context.Context) { nap(ctx, 25*time.Second) }
		a.add(t, tenSecondly, task)
		b.add(t, tenSecondly, task, listen)
		a.Start()
		b.Start()
		until(11 * time.Second)
		c.requireSkip(*errs, scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipHeld, By: "a", Pending: true}, redlock.ErrHeld)
		until(21 * time.Second)
		e := c.requireSkip(*errs, scheduler.SkipError{Tick: at(20), Reason: scheduler.SkipOverlap, By: "a", Pending: true}, redlock.ErrHeld)
		require.ErrorContains(t, e, "is skipped: overlap by a, and may be run later: redlock: ")
		synctest.Wait()
		require.NotZero(t, c.book.reasons()[scheduler.SkipSuperseded], "10 s, by 20 s")
		until(40 * time.Second)
		require.Equal(t, []int{10, 30}, c.book.tickSeconds())
	})
}

func TestSkipNotLeader(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		listen, errs := told()
		for _, d := range []time.Duration{0, time.Second} {
			time.Sleep(d)
			r := c.named("x", scheduler.WithElection("jobs"))
			r.add(t, tenSecondly, func() {}, listen)
			r.Start()
		}
		until(11 * time.Second)
		require.Len(t, *errs, 1)
		e := c.requireSkip(*errs, scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipNotLeader, Pending: true}, elector.ErrNotLeader)
		require.EqualError(t, e, `scheduler: job "job", tick 2000-01-01T00:00:10Z is skipped: not_leader, and may be run later: elector: not the leader`)
		until(25 * time.Second)
		require.Equal(t, []int{10, 20}, c.book.tickSeconds())
		require.Equal(t, map[scheduler.Reason]int{scheduler.SkipNotLeader: 2}, c.book.reasons(), "that another one leads is reported once a tick")
	})
}

func TestSkipForWantOfNodes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		broken func(c *cluster, r *replica)
		opts   []scheduler.Option
		reason scheduler.Reason
		cause  error
	}{
		{"frozen", func(c *cluster, _ *replica) { c.freeze(0, 1, 2) }, nil, scheduler.SkipTimeout, redlock.ErrTimeout},
		{"hurry", func(c *cluster, _ *replica) { c.freeze(0, 1, 2) }, []scheduler.Option{scheduler.WithTryTimeout(20 * time.Millisecond)}, scheduler.SkipTimeout, redlock.ErrTimeout},
		{"killed", func(c *cluster, _ *replica) {
			for i := range 3 {
				require.NoError(c.t, c.fleet.Node(i).Kill())
			}
		}, nil, scheduler.SkipNoQuorum, redlock.ErrNoQuorum},
		{"closed", func(c *cluster, r *replica) { require.NoError(c.t, r.q.Close()) }, nil, scheduler.SkipStopped, redlock.ErrClosed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a", tc.opts...)
				listen, errs := told()
				r.add(t, tenSecondly, func() {}, listen)
				r.Start()
				until(5 * time.Second)
				tc.broken(c, r)
				until(12 * time.Second)
				pending := tc.reason != scheduler.SkipStopped
				c.requireSkip(*errs, scheduler.SkipError{Tick: at(10), Reason: tc.reason, Pending: pending}, tc.cause)
				until(19 * time.Second) // the grace is over
				require.Len(t, *errs, 1)
				want := map[scheduler.Reason]int{tc.reason: 1}
				if pending {
					want[tc.reason] = 2
				}
				require.Equal(t, want, c.book.reasons(), "the reason is reported again when the tick is given up")
			})
		})
	}
}

func TestSkipQuarantined(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		q, err := redlock.Open(c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(silent))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		s, err := scheduler.New(q, scheduler.WithLocation(time.UTC), scheduler.WithLogger(silent), scheduler.WithTracer(c.book))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
		listen, errs := told()
		_, err = s.NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName("job"), listen)
		require.NoError(t, err)
		until(30 * time.Second)
		for i := range 3 {
			require.NoError(t, c.fleet.Node(i).Restart(false))
		}
		s.Start()
		until(31500 * time.Millisecond)
		c.requireSkip(*errs, scheduler.SkipError{Tick: at(31), Reason: scheduler.SkipQuarantined, Pending: true}, redlock.ErrNoQuorum)
	})
}

func TestTracerData(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		tr := &delays{book: c.book}
		r := c.replica(scheduler.WithTracer(tr), ahead(50*time.Millisecond))
		failed := errors.New("failed")
		j := r.add(t, tenSecondly, func(ctx context.Context) error {
			require.Equal(t, "tracer", ctx.Value(valueKey{}))
			time.Sleep(time.Second)
			if len(tr.started) == 2 {
				panic("ouch")
			}
			return failed
		}, gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {})))
		r.Start()
		until(22 * time.Second)
		require.NoError(t, j.RunNow())
		until(25 * time.Second)
		require.Len(t, tr.started, 3)
		require.InDelta(t, 0, tr.started[0].Delay, float64(10*time.Millisecond))
		require.Zero(t, tr.started[2].Delay, "RunNow has no tick")
		require.True(t, tr.started[2].Run.Tick.IsZero())
		ends := c.book.ends
		require.Equal(t, []bool{false, true, false}, []bool{ends[0].Panicked, ends[1].Panicked, ends[2].Panicked})
		require.Equal(t, []error{failed, nil, failed}, []error{ends[0].Err, ends[1].Err, ends[2].Err})
		for i, end := range ends {
			require.Equal(t, time.Second, end.Duration)
			require.Equal(t, tr.started[i].Run, end.Run)
		}
	})
}

// delays is a tracer that keeps what a book leaves out, and gives the task a context.
type delays struct {
	*book
	started []scheduler.TraceRunStartData
}

func (d *delays) TraceRunStart(ctx context.Context, data scheduler.TraceRunStartData) context.Context {
	d.started = append(d.started, data)
	return context.WithValue(d.book.TraceRunStart(ctx, data), valueKey{}, "tracer")
}
