package scheduler_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// never is a job that only RunNow runs.
var never = gocron.CronJob("0 0 1 1 *", false)

// requireSkip requires a skip for these reasons, and that tracers and listeners are told of the
// same.
func (c *cluster) requireSkip(got *scheduler.SkipError, want scheduler.SkipError, cause error) {
	c.t.Helper()
	require.Equal(c.t, "job", got.Job)
	require.True(c.t, want.Tick.Equal(got.Tick), "tick %v", got.Tick)
	require.Equal(c.t, []any{want.Reason, want.By, want.Pending}, []any{got.Reason, got.By, got.Pending}, got.Error())
	if cause != nil {
		require.ErrorIs(c.t, got, cause)
	}
	require.Equal(c.t, string(want.Reason), redlock.ErrorType(got))
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	require.Contains(c.t, c.book.skips, got)
}

// Which replica runs a tick is told to the others, and that nothing is wrong.
func TestSkipsOfTicksThatAnotherReplicaHas(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		task := func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Due.Equal(at(20)) {
				time.Sleep(14 * time.Second)
			}
			time.Sleep(500 * time.Millisecond)
		}
		heard := make(map[string]func() []*scheduler.SkipError)
		for _, name := range []string{"a", "b"} {
			var listen gocron.JobOption
			listen, heard[name] = told()
			r := c.named(name)
			r.add(t, tenSecondly, task, listen)
			r.Start()
		}
		listen, late := told()
		behind := c.named("late", ahead(-900*time.Millisecond))
		behind.add(t, tenSecondly, func() {}, listen)
		behind.Start()
		who := func(i int) (by string, others []*scheduler.SkipError) {
			run, _ := c.book.run(i)
			by = run.Lease().Identity()
			return by, heard[map[string]string{"a": "b", "b": "a"}[by]]()
		}
		until(at(12))
		by, skips := who(0)
		require.Len(t, skips, 1)
		c.requireSkip(skips[0], scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipHeld, By: by}, nil)
		require.ErrorContains(t, skips[0], `scheduler: job "job", tick 2000-01-01T00:00:10Z is skipped: held by `+by)
		require.Len(t, late(), 1)
		c.requireSkip(late()[0], scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipDone, By: by}, nil)
		until(at(31))
		by, skips = who(1)
		c.requireSkip(skips[len(skips)-1], scheduler.SkipError{Tick: at(30), Reason: scheduler.SkipOverlap, By: by, Pending: true}, redlock.ErrHeld)
		for _, skip := range c.book.skips {
			require.True(t, skip.Expected(), skip)
		}
	})
}

// A tick that may come back is pending for the others.
func TestSkipPending(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		listen, heard := told()
		for _, name := range []string{"a", "b"} {
			r := c.named(name, jobOptions(scheduler.WithOverlap(scheduler.OverlapQueue), scheduler.WithDelivery(scheduler.AtLeastOnce), scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest)))
			r.add(t, tenSecondly, func(ctx context.Context) { nap(ctx, 25*time.Second) }, listen)
			r.Start()
		}
		until(at(11))
		run, _ := c.book.run(0)
		require.Len(t, heard(), 1)
		c.requireSkip(heard()[0], scheduler.SkipError{Tick: at(10), Reason: scheduler.SkipHeld, By: run.Lease().Identity(), Pending: true}, nil)
		require.ErrorContains(t, heard()[0], ", and may be run later")
		until(at(50))
		require.Equal(t, []int{10, 30}, c.book.seconds(), "30 s is queued, and takes the place of 20 s")
	})
}

func TestSkipForWantOfNodes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		broken func(t *testing.T, c *cluster, r *replica)
		reason scheduler.Reason
		cause  error
	}{
		{"frozen", func(_ *testing.T, c *cluster, _ *replica) { c.freeze() }, scheduler.SkipTimeout, redlock.ErrTimeout},
		{"killed", func(t *testing.T, c *cluster, _ *replica) {
			for _, n := range c.fleet.Nodes()[:2] {
				require.NoError(t, n.Kill())
			}
		}, scheduler.SkipNoQuorum, redlock.ErrNoQuorum},
		{"closed", func(t *testing.T, _ *cluster, r *replica) { require.NoError(t, r.q.Close()) }, scheduler.SkipStopped, redlock.ErrClosed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a")
				listen, heard := told()
				r.add(t, tenSecondly, func() {}, listen)
				r.Start()
				until(at(5))
				tc.broken(t, c, r)
				until(at(18)) // and the grace is over
				require.Len(t, heard(), 1, "it is told once")
				c.requireSkip(heard()[0], scheduler.SkipError{Tick: at(10), Reason: tc.reason, Pending: true}, tc.cause)
				require.Equal(t, tc.reason == scheduler.SkipStopped, heard()[0].Expected())
			})
		})
	}
}

// Nodes that were restarted do not vote yet.
func TestSkipQuarantined(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		q, err := redlock.Open(c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(silent))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		s := made(t, q, scheduler.WithLocation(time.UTC), scheduler.WithTracer(c.book.tracer()))
		listen, heard := told()
		_, err = s.NewJob(tenSecondly, gocron.NewTask(func() {}), gocron.WithName("job"), listen)
		require.NoError(t, err)
		s.Start()
		until(at(59))
		before := len(heard())
		for _, n := range c.fleet.Nodes()[:2] {
			require.NoError(t, n.Restart(false))
		}
		until(at(62))
		require.Len(t, heard(), before+1)
		c.requireSkip(heard()[before], scheduler.SkipError{Tick: at(60), Reason: scheduler.SkipQuarantined, Pending: true}, redlock.ErrNoQuorum)
	})
}

// The page has every reason.
func TestSkipReasonsAreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/scheduling.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| reason | means |")
	require.True(t, found)
	for _, r := range []scheduler.Reason{scheduler.SkipHeld, scheduler.SkipDone, scheduler.SkipOverlap, scheduler.SkipNotLeader, scheduler.SkipQuarantined,
		scheduler.SkipNoQuorum, scheduler.SkipTimeout, scheduler.SkipPaused, scheduler.SkipAhead, scheduler.SkipRefused, scheduler.SkipLimit, scheduler.SkipSplit,
		scheduler.SkipSuperseded, scheduler.SkipMissed, scheduler.SkipCutShort, scheduler.SkipStopped, scheduler.SkipOther} {
		require.Contains(t, table, "`"+string(r)+"`")
	}
}

// refusedRun requires that RunNow says why there is no run.
func refusedRun(t *testing.T, j gocron.Job, want scheduler.Reason, by string) *scheduler.SkipError {
	t.Helper()
	var skip *scheduler.SkipError
	require.ErrorAs(t, j.RunNow(), &skip)
	require.Equal(t, []any{want, by, "job"}, []any{skip.Reason, skip.By, skip.Job}, skip.Error())
	require.True(t, skip.Tick.IsZero())
	return skip
}

// RunNow is a run of its own: it excludes others, is excluded by them, and is no tick. It says why
// there is no run, to its caller alone.
func TestRunNowExcludesRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a, b := c.named("a"), c.named("b")
		listen, heard := told()
		task := func() { time.Sleep(3 * time.Second) }
		ja, jb := a.add(t, tenSecondly, task, listen), b.add(t, tenSecondly, task, listen)
		require.ErrorIs(t, refusedRun(t, ja, scheduler.SkipStopped, ""), gocron.ErrJobRunNowFailed)
		a.Start()
		time.Sleep(300 * time.Millisecond)
		require.NoError(t, ja.RunNow())
		b.Start()
		until(at(1))
		require.ErrorContains(t, refusedRun(t, jb, scheduler.SkipOverlap, "a"), `scheduler: job "job" is skipped: overlap by a: `)
		refusedRun(t, ja, scheduler.SkipOverlap, "a")
		require.Empty(t, heard())
		until(at(9))
		require.NoError(t, jb.RunNow())
		until(at(25))
		require.Equal(t, 1, c.book.most)
		run, _ := c.book.run(1)
		require.Equal(t, "ordered", run.Why)
		require.Equal(t, []time.Time{{}, {}, at(20)}, c.book.ticks(), "10 s was overlapped")
		c.freeze()
		began := time.Now()
		refusedRun(t, ja, scheduler.SkipTimeout, "")
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
		answer := make(chan error, 1)
		go func() { answer <- ja.RunNow() }()
		until(at(29))
		require.NoError(t, a.StopJobs())
		require.Error(t, <-answer)
		c.thaw()
		require.NoError(t, b.RemoveJob(jb.ID()))
		require.ErrorIs(t, jb.RunNow(), gocron.ErrJobNotFound)
	})
}

// RunNow on a follower says that it does nothing.
func TestTrap12RunNowOnAFollower(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var jobs []gocron.Job
		var replicas []*replica
		for range 2 {
			r := c.replica(scheduler.WithElection("jobs"))
			jobs = append(jobs, r.add(t, never, func() {}))
			r.Start()
			replicas = append(replicas, r)
		}
		until(at(5))
		for i, r := range replicas {
			if r.Elector().IsLeader(t.Context()) == nil {
				require.NoError(t, jobs[i].RunNow())
				continue
			}
			err := refusedRun(t, jobs[i], scheduler.SkipNotLeader, "")
			require.ErrorIs(t, err, elector.ErrNotLeader)
			require.EqualError(t, err, `scheduler: job "job" is skipped: not_leader: elector: not the leader`)
		}
		until(at(6))
		require.Len(t, c.book.ticks(), 1)
		require.Empty(t, c.book.skips)
	})
}
