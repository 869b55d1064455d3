package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	scheduler "github.com/tenure-dev/tenure/scheduler"
)

// secondly ticks at every full second.
var secondly = gocron.CronJob("* * * * * *", true)

// settable is a wall clock that is set while it is used.
type settable struct{ ahead atomic.Int64 }

func (c *settable) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }
func (c *settable) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }

// ahead is the clock of a machine that is ahead of the others.
func ahead(d time.Duration) scheduler.Option {
	c := &settable{}
	c.set(d)
	return scheduler.WithWall(c.now)
}

// ttl is that of the leases of replicas.
const ttl = 3 * time.Second

// jobOptions are options of all jobs.
func jobOptions(opts ...gocron.JobOption) scheduler.Option { return scheduler.WithJobOptions(opts...) }

// cluster is several replicas of a service in one bubble, and what they ran.
type cluster struct {
	t      *testing.T
	fleet  *redlocktest.Fleet
	book   *book
	quorum []redlock.Option // of replicas
}

// replica is one of them.
type replica struct {
	*scheduler.Scheduler
	q *redlock.Quorum
}

// inCluster runs a test with three nodes in a bubble.
func inCluster(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, fleet: redlocktest.StartPipes(t, 3), book: &book{}}
		time.Sleep(500 * time.Millisecond) // between two ticks
		test(t, c)
	})
}

// replica makes a replica that is shut down with the test.
func (c *cluster) replica(opts ...scheduler.Option) *replica {
	c.t.Helper()
	q := open(c.t, c.fleet.URLs(), append([]redlock.Option{redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl)}, c.quorum...)...)
	s, err := scheduler.New(q, append([]scheduler.Option{
		scheduler.WithLocation(time.UTC), scheduler.WithLogger(slog.New(slog.DiscardHandler)), scheduler.WithTracer(c.book.tracer()),
	}, opts...)...)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, s.Shutdown()) })
	return &replica{Scheduler: s, q: q}
}

// add adds a job of the name "job".
func (r *replica) add(t *testing.T, d gocron.JobDefinition, task any, opts ...gocron.JobOption) gocron.Job {
	t.Helper()
	j, err := r.NewJob(d, gocron.NewTask(task), append([]gocron.JobOption{gocron.WithName("job")}, opts...)...)
	require.NoError(t, err)
	return j
}

// book records what tracers are told.
type book struct {
	mu      sync.Mutex
	running int                     // guarded by mu
	most    int                     // guarded by mu; runs at a time
	runs    []scheduler.Run         // guarded by mu; in the order of their beginnings
	begun   []time.Time             // guarded by mu
	ends    []scheduler.RunEndTrace // guarded by mu
	skips   []*scheduler.SkipError  // guarded by mu
}

func (b *book) tracer() *scheduler.Tracer {
	return &scheduler.Tracer{RunStart: b.start, RunEnd: b.end, Skip: b.skip}
}

func (b *book) start(ctx context.Context, data scheduler.RunStartTrace) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running++
	b.most = max(b.most, b.running)
	b.runs = append(b.runs, data.Run)
	b.begun = append(b.begun, time.Now())
	return ctx
}

// run returns the i-th run and when it began.
func (b *book) run(i int) (scheduler.Run, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[i], b.begun[i]
}

func (b *book) end(_ context.Context, data scheduler.RunEndTrace) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	b.ends = append(b.ends, data)
}

func (b *book) skip(_ context.Context, e *scheduler.SkipError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.skips = append(b.skips, e)
}

// ticks returns the ticks that were run, in the order of their runs.
func (b *book) ticks() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	ticks := make([]time.Time, len(b.runs))
	for i, r := range b.runs {
		ticks[i] = r.Due
	}
	return ticks
}

// reasons counts why ticks were skipped, for good.
func (b *book) reasons() map[scheduler.Reason]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := make(map[scheduler.Reason]int)
	for _, s := range b.skips {
		if !s.Pending {
			n[s.Reason]++
		}
	}
	return n
}

// seconds are n ticks from the next full second on.
func seconds(n int) []time.Time {
	first := time.Now().UTC().Truncate(time.Second)
	ticks := make([]time.Time, n)
	for i := range ticks {
		ticks[i] = first.Add(time.Duration(i+1) * time.Second)
	}
	return ticks
}

// Three replicas whose clocks are up to two seconds apart, a job that takes no time, thirty
// ticks: thirty runs.
func TestTrap03InstantJobRunsOncePerTick(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []scheduler.Option
	}{
		{"each run on whoever gets it", nil},
		{"on the leader", []scheduler.Option{scheduler.WithElection("jobs")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var replicas []*replica
				for _, d := range []time.Duration{-900 * time.Millisecond, 0, 800 * time.Millisecond} {
					r := c.replica(append(slices.Clone(test.opts), ahead(d))...)
					r.add(t, secondly, func() {})
					replicas = append(replicas, r)
				}
				for _, r := range replicas {
					r.Start()
				}
				time.Sleep(32 * time.Second)
				synctest.Wait()
				got := c.book.ticks()
				require.GreaterOrEqual(t, len(got), 30)
				for i, tick := range got {
					require.True(t, tick.Equal(got[0].Add(time.Duration(i)*time.Second)), "run %d is of %v", i, tick)
				}
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

func TestRunFromContext(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(jobOptions(gocron.WithContext(context.WithValue(t.Context(), valueKey{}, "value"))))
		type seen struct {
			run  scheduler.Run
			ok   bool
			text any
			left time.Duration
		}
		got := make(chan seen, 1)
		r.add(t, secondly, func(ctx context.Context) error {
			run, ok := scheduler.RunFromContext(ctx)
			got <- seen{run, ok, ctx.Value(valueKey{}), time.Until(run.Deadline())}
			return errors.New("failed")
		})
		want := seconds(2)
		r.Start()
		first, second := <-got, <-got
		require.True(t, first.ok)
		require.Equal(t, "job", first.run.Job)
		require.True(t, first.run.Due.Equal(want[0]))
		require.Equal(t, 1, first.run.Attempt)
		require.Equal(t, "on_time", first.run.Why)
		require.Equal(t, "value", first.text)
		require.InDelta(t, float64(ttl), float64(first.left), float64(ttl)/10)
		require.Greater(t, second.run.FencingToken(), first.run.FencingToken())
		_, ok := scheduler.RunFromContext(t.Context())
		require.False(t, ok)
		synctest.Wait()
		require.EqualError(t, c.book.ends[0].Err, "failed")
	})
}

type valueKey struct{}

// A run that takes longer than the interval is overlapped by no other, on any replica.
func TestTrap08RunsDoNotOverlap(t *testing.T) {
	for _, test := range []struct {
		overlap scheduler.Overlap
		runs    int
	}{
		{scheduler.OverlapSkip, 10},  // at 0, 3, 6, ... of 30 s
		{scheduler.OverlapQueue, 12}, // one after the other
	} {
		t.Run(test.overlap.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 3 {
					r := c.replica(jobOptions(scheduler.WithOverlap(test.overlap)))
					r.add(t, secondly, func() { time.Sleep(2500 * time.Millisecond) })
					r.Start()
				}
				time.Sleep(30*time.Second + 100*time.Millisecond)
				synctest.Wait()
				require.Equal(t, 1, c.book.most)
				require.InDelta(t, test.runs, len(c.book.runs), 1)
				require.True(t, slices.IsSortedFunc(c.book.ticks(), time.Time.Compare))
				require.NotZero(t, c.book.reasons()[scheduler.SkipOverlap])
			})
		})
	}
}
