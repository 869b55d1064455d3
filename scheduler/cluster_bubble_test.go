package scheduler_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// secondly ticks at every full second.
var secondly = gocron.CronJob("* * * * * *", true)

// tenSecondly ticks at every tenth second.
var tenSecondly = gocron.CronJob("*/10 * * * * *", true)

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

	replicas []*replica
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
	c.replicas = append(c.replicas, &replica{Scheduler: s, q: q})
	return c.replicas[len(c.replicas)-1]
}

// add adds a job of the name "job".
func (r *replica) add(t *testing.T, d gocron.JobDefinition, task any, opts ...gocron.JobOption) gocron.Job {
	t.Helper()
	j, err := r.NewJob(d, gocron.NewTask(task), append([]gocron.JobOption{gocron.WithName("job")}, opts...)...)
	require.NoError(t, err)
	return j
}

// runs makes a replica that has the job of the name "job", and starts it.
func (c *cluster) runs(d gocron.JobDefinition, task any, opts ...scheduler.Option) *replica {
	c.t.Helper()
	return c.replica(opts...).with(c.t, d, task)
}

// with gives a replica the job of the name "job", and starts it.
func (r *replica) with(t *testing.T, d gocron.JobDefinition, task any, opts ...gocron.JobOption) *replica {
	t.Helper()
	r.add(t, d, task, opts...)
	r.Start()
	return r
}

// book records what tracers are told.
type book struct {
	ends  notes[scheduler.RunEndTrace]
	skips notes[*scheduler.SkipError]

	mu      sync.Mutex
	running int             // guarded by mu
	most    int             // guarded by mu; runs at a time
	runs    []scheduler.Run // guarded by mu; in the order of their beginnings
	begun   []time.Time     // guarded by mu
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
	b.ends.add(data)
}

func (b *book) skip(_ context.Context, e *scheduler.SkipError) { b.skips.add(e) }

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
	n := make(map[scheduler.Reason]int)
	for _, s := range b.skips.read() {
		if !s.Pending {
			n[s.Reason]++
		}
	}
	return n
}

// quiet has replicas tell nobody, which costs commands.
var quiet = scheduler.WithTelling(scheduler.Telling{NoCard: true, NoHistory: true, NoOrders: true})

// minutely ticks at every full minute.
var minutely = gocron.CronJob("* * * * *", false)

// everyTwo ticks at every second full minute.
var everyTwo = gocron.CronJob("*/2 * * * *", false)

// stop shuts a replica down as a deploy does.
func (c *cluster) stop(r *replica) {
	c.t.Helper()
	require.NoError(c.t, r.Shutdown())
	require.NoError(c.t, r.q.Close())
}

// kill is as near as a bubble comes to SIGKILL: nothing reaches the nodes any more.
func (c *cluster) kill(r *replica) {
	c.t.Helper()
	require.NoError(c.t, r.q.Close())
	require.NoError(c.t, r.Shutdown())
}

// day is a time of the bubble, which begins on 1 January 2000.
func day(d, hour, minute, second int) time.Time {
	return time.Date(2000, 1, d, hour, minute, second, 0, time.UTC)
}

// until sleeps, and waits until nothing is left to be done then.
func until(at time.Time) {
	time.Sleep(time.Until(at))
	synctest.Wait()
}

// life is a replica with one job from one time to another.
func (c *cluster) life(from, to time.Time, d gocron.JobDefinition, opts ...gocron.JobOption) {
	c.t.Helper()
	until(from)
	r := c.replica(quiet).with(c.t, d, func() {}, opts...)
	until(to)
	c.stop(r)
}

// holder returns the replica of a run.
func (c *cluster) holder(run scheduler.Run) *replica {
	return c.replicas[slices.IndexFunc(c.replicas, func(r *replica) bool { return r.q.Identity() == run.Lease().Identity() })]
}

// has returns when a tick was run, and requires that it was run once at most.
func (b *book) has(t *testing.T, tick time.Time) (at time.Time, ok bool) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, r := range b.runs {
		if r.Due.Equal(tick) {
			require.False(t, ok, "%v was run twice", tick)
			at, ok = b.begun[i], true
		}
	}
	return at, ok
}

// texts are the ticks that were run.
func (b *book) texts(layout string) (texts []string) {
	for _, tick := range b.ticks() {
		texts = append(texts, tick.Format(layout))
	}
	return texts
}

// within is a catch-up of a window, which CatchUpNone has not.
func within(window time.Duration, p scheduler.CatchUp) gocron.JobOption {
	if p == scheduler.CatchUpNone {
		window = 0
	}
	return scheduler.WithCatchUp(window, p)
}

// at is a second of the bubble's first day.
func at(second int) time.Time { return day(1, 0, 0, second) }

// seconds are the ticks that were run, as seconds of the bubble's first day.
func (b *book) seconds() (s []int) {
	for _, tick := range b.ticks() {
		s = append(s, int(tick.Sub(at(0))/time.Second))
	}
	return s
}

// notes are what several goroutines write down.
type notes[T any] struct {
	mu  sync.Mutex
	all []T // guarded by mu
}

func (n *notes[T]) add(note T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, note)
}

func (n *notes[T]) read() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// told is an option with a listener, and what it is told of ticks that are not run. It may be given
// to several replicas.
func told() (gocron.JobOption, func() []*scheduler.SkipError) {
	var skips notes[*scheduler.SkipError]
	return gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { skips.add(err.(*scheduler.SkipError)) })), skips.read
}

// named makes a replica with an identity.
func (c *cluster) named(name string, opts ...scheduler.Option) *replica {
	c.t.Helper()
	all := c.quorum
	defer func() { c.quorum = all }()
	c.quorum = append(slices.Clone(all), redlock.WithIdentity(name))
	return c.replica(opts...)
}

// freeze stops a quorum of nodes, and thaw lets them go on.
func (c *cluster) freeze() {
	c.t.Helper()
	freeze(c.t, c.fleet)
}

func (c *cluster) thaw() {
	c.t.Helper()
	for _, n := range c.fleet.Nodes()[:2] {
		require.NoError(c.t, n.Thaw())
	}
}

// nap sleeps for d, or until ctx ends.
func nap(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// jobKey is the key of the lease of the job "job".
const jobKey = scheduler.KeyPrefix + "job"

// setPause pauses a job, or all of them, and resume ends that.
func (c *cluster) setPause(key, by string) {
	c.t.Helper()
	_, _, err := pause.Set(c.t.Context(), c.replicas[0].q, key, pause.Pause{By: by, Why: "a test"})
	require.NoError(c.t, err)
}

func (c *cluster) resume(key string) {
	c.t.Helper()
	_, _, err := pause.Resume(c.t.Context(), c.replicas[0].q, key, "ann", "done")
	require.NoError(c.t, err)
}
