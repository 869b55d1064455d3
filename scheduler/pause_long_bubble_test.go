//go:build long

package scheduler_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// pauseBook records what a tracer is told of pauses: by whom each is, and "" for an end.
type pauseBook struct {
	mu   sync.Mutex
	is   string   // guarded by mu
	told []string // guarded by mu
}

func (b *pauseBook) option() scheduler.Option {
	return scheduler.WithTracer(&scheduler.Tracer{Job: func(_ context.Context, data scheduler.JobTrace) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.is != data.Pause.By {
			b.is = data.Pause.By
			b.told = append(b.told, b.is)
		}
	}})
}

func (b *pauseBook) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.told)
}

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

// Ticks of a paused job are left out on all replicas, and for good; RunNow is not a tick. Tracer
// and log hear of a pause that is new, and of its end, and not of each tick.
func TestPausedJob(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				book, log := new(pauseBook), new(journal)
				c.replica() // of an operator
				r := c.replica(append(mode.opts, book.option(), scheduler.WithLogger(log.logger()), jobOptions(within(10*time.Minute, scheduler.CatchUpAll)))...)
				var mu sync.Mutex
				var ran []int
				j := r.add(t, tenSecondly, func(ctx context.Context) {
					run, _ := scheduler.RunFromContext(ctx)
					mu.Lock()
					defer mu.Unlock()
					ran = append(ran, max(0, int(run.Due.Sub(at(0))/time.Second)))
				})
				r.Start()
				until(at(15))
				c.setPause(jobKey, "bob")
				until(at(22))
				c.setPause("", "ann")
				until(at(32))
				require.NoError(t, j.RunNow())
				c.resume(jobKey)
				until(at(42))
				c.resume("")
				until(at(55))
				require.Equal(t, []int{10, 0, 50}, ran, "what was paused is not caught up")
				require.Equal(t, []string{"bob", "ann", ""}, book.heard())
				require.Len(t, log.lines(`level=WARN msg="scheduler: a job is paused`), 2)
				require.Contains(t, log.lines("a job is paused")[0], `by=bob why="a test"`)
				require.Len(t, log.lines("not paused any more"), 1)
			})
		})
	}
}

// A replica knows of a pause from the beginning, also where the next tick is far away: when it
// starts, when it is elected and when the job is changed. One that runs the job no more knows of
// none.
func TestPauseOfBeforeIsKnown(t *testing.T) {
	for _, key := range []string{jobKey, ""} {
		t.Run("key "+key, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				operator := c.operator()
				c.replica()
				c.setPause(key, "ann")
				begin := func(opts ...scheduler.Option) (*replica, gocron.Job, *pauseBook) {
					b := new(pauseBook)
					r := c.replica(append(opts, b.option())...)
					j := r.add(t, gocron.CronJob("0 12 * * *", false), func() {})
					r.Start()
					time.Sleep(time.Second)
					return r, j, b
				}
				r, j, b := begin()
				require.Equal(t, []string{"ann"}, b.heard(), "it has started")
				_, err := r.Update(j.ID(), gocron.CronJob("0 13 * * *", false), gocron.NewTask(func() {}), gocron.WithName("job"))
				require.NoError(t, err)
				time.Sleep(time.Second)
				require.Equal(t, []string{"ann", "", "ann"}, b.heard(), "the job was changed")
				require.NoError(t, r.RemoveJob(j.ID()))
				require.Equal(t, []string{"ann", "", "ann", ""}, b.heard(), "the job is gone")
				require.NoError(t, r.Shutdown())
				r, _, b = begin()
				require.NoError(t, r.StopJobs())
				require.Equal(t, []string{"ann", ""}, b.heard(), "it is stopped")
				_, _, b = begin(scheduler.WithElection("jobs"))
				require.Equal(t, []string{"ann"}, b.heard())
				_, _, follower := begin(scheduler.WithElection("jobs"))
				require.Empty(t, follower.heard())
				require.NoError(t, operator.Resign(t.Context(), "jobs", ""))
				time.Sleep(time.Second)
				require.Equal(t, []string{"ann", ""}, b.heard(), "it has resigned")
				require.Equal(t, []string{"ann"}, follower.heard(), "it was elected")
				c.freeze()
				time.Sleep(4 * ttl)
				require.Equal(t, []string{"ann", ""}, follower.heard(), "it leads no more")
				c.thaw()
			})
		})
	}
}

// A replica has no job of the old name any more after an update that gives it another.
func TestRenamedJobIsNotPausedUnderItsOldName(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		b := new(pauseBook)
		r := c.replica(b.option(), scheduler.WithLeaseOptions(redlock.WithIdentity("a")))
		var renamed []string
		j := r.add(t, tenSecondly, func() {})
		r.Start()
		c.setPause(jobKey, "ann")
		until(at(15))
		_, err := r.Update(j.ID(), tenSecondly, gocron.NewTask(func() { renamed = append(renamed, "ran") }), gocron.WithName("renamed"))
		require.NoError(t, err)
		until(at(25))
		require.Equal(t, []string{"ann", ""}, b.heard())
		require.Len(t, renamed, 1)
	})
}
