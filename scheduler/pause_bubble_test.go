package scheduler_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// pauseBook records what a PauseTracer is told. It is a book, too.
type pauseBook struct {
	*book
	told []scheduler.TracePauseData // guarded by the book's mu
}

func (b *pauseBook) TracePause(_ context.Context, data scheduler.TracePauseData) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, data)
}

// termBook is a pauseBook, and hands out terms.
type termBook struct {
	*pauseBook
	terms chan *elector.Term
}

func (b *termBook) TraceCampaignStart(ctx context.Context, _ elector.TraceCampaignStartData) context.Context {
	return ctx
}

func (b *termBook) TraceCampaignEnd(_ context.Context, data elector.TraceCampaignEndData) {
	if data.Term != nil {
		b.terms <- data.Term
	}
}

// heard returns what it was told.
func (b *pauseBook) heard() []scheduler.TracePauseData {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.told)
}

// A tracer hears of a pause that is new, and of its end, and not of each tick.
func TestPauseIsTraced(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		b := &pauseBook{book: c.book}
		r := c.replica(scheduler.WithTracer(b))
		r.add(t, secondly, func() {})
		r.Start()
		until(3 * time.Second)
		var versions []uint64
		for _, key := range []string{"job/job", redlock.AllKeys} {
			p, err := r.q.Pause(t.Context(), key, redlock.PauseOptions{By: key})
			require.NoError(t, err)
			versions = append(versions, p.Version)
			pass(5 * time.Second)
		}
		for _, key := range []string{"job/job", redlock.AllKeys} {
			_, err := r.q.Resume(t.Context(), key, redlock.PauseOptions{})
			require.NoError(t, err)
			pass(5 * time.Second)
		}
		var told []uint64
		for _, data := range b.heard() {
			require.Equal(t, "job", data.Job)
			told = append(told, data.Pause.Version)
		}
		require.Equal(t, append(versions, 0), told)
	})
}

// A replica knows of a pause from the beginning, also where the next tick is far away: when it
// starts, when it is elected and when the job is changed. One that runs the job no more knows of
// none.
func TestPauseOfBeforeIsKnown(t *testing.T) {
	for name, key := range map[string]string{"job": "job/job", "all": redlock.AllKeys} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				p, err := c.replica().q.Pause(t.Context(), key, redlock.PauseOptions{By: "ann"})
				require.NoError(t, err)
				daily := gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(12, 0, 0)))
				begin := func(opts ...scheduler.Option) (*replica, gocron.Job, func() []uint64) {
					b := &pauseBook{book: c.book}
					r := c.replica(append(opts, scheduler.WithTracer(b))...)
					j := r.add(t, daily, func() {})
					r.Start()
					pass(time.Second)
					return r, j, func() (versions []uint64) {
						for _, data := range b.heard() {
							versions = append(versions, data.Pause.Version)
						}
						return versions
					}
				}
				r, j, told := begin()
				require.Equal(t, []uint64{p.Version}, told(), "it has started")
				_, err = r.Update(j.ID(), daily, scheduler.NewTask(func() {}), gocron.WithName("job"))
				require.NoError(t, err)
				pass(time.Second)
				require.Equal(t, p.Version, told()[len(told())-1], "the job was changed")
				require.NoError(t, r.RemoveJob(j.ID()))
				require.Zero(t, told()[len(told())-1], "the job is gone")
				require.NoError(t, r.Shutdown())
				r, _, told = begin()
				require.NoError(t, r.StopJobs())
				require.Equal(t, []uint64{p.Version, 0}, told(), "it is stopped")

				_, _, told = begin(scheduler.WithElection("jobs"))
				require.Equal(t, []uint64{p.Version}, told())
				_, _, follows := begin(scheduler.WithElection("jobs"))
				require.Empty(t, follows())
				require.NoError(t, c.operator().Resign(t.Context(), "jobs", ""))
				require.Equal(t, []uint64{p.Version, 0}, told(), "it has resigned")
				pass(100 * time.Millisecond)
				require.Equal(t, []uint64{p.Version}, follows(), "it was elected")
			})
		})
	}
}

// What a replica has asked about a pause tells nothing when it has ceased to run the job's ticks
// before the answer came: its term has ended, or the job is gone.
func TestLateAnswerAboutAPause(t *testing.T) {
	daily := gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(12, 0, 0)))
	for name, begin := range map[string]func(t *testing.T, c *cluster, b *pauseBook) (end func()){
		"its term has ended": func(t *testing.T, c *cluster, b *pauseBook) (end func()) {
			terms := &termBook{pauseBook: b, terms: make(chan *elector.Term, 10)}
			r := c.replica(scheduler.WithTracer(terms), scheduler.WithElection("jobs"))
			r.add(t, daily, func() {})
			r.Start()
			term := <-terms.terms
			c.replica(scheduler.WithElection("jobs")).Start()
			return func() { require.NoError(t, term.Resign(t.Context())) }
		},
		"the job is gone": func(t *testing.T, c *cluster, b *pauseBook) (end func()) {
			r := c.replica(scheduler.WithTracer(b))
			r.Start()
			j := r.add(t, daily, func() {})
			return func() { require.NoError(t, r.RemoveJob(j.ID())) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				_, err := c.replica().q.Pause(t.Context(), "job/job", redlock.PauseOptions{})
				require.NoError(t, err)
				for i := range 5 {
					c.fleet.Node(i).SetDelay(40 * time.Millisecond)
				}
				b := &pauseBook{book: c.book}
				end := begin(t, c, b)
				time.Sleep(5 * time.Millisecond)
				end()
				pass(time.Minute)
				if told := b.heard(); len(told) > 0 {
					require.Zero(t, told[len(told)-1].Pause.Version)
				}
			})
		})
	}
}

// The first tick of a duration job after a pause is the first that is due, although its interval
// began before.
func TestPausedDurationJob(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		time.Sleep(5 * time.Second)
		r := c.replica()
		r.add(t, gocron.DurationJob(10*time.Second), func() {}) // at 15, 25, ...
		r.Start()
		until(16 * time.Second)
		_, err := r.q.Pause(t.Context(), redlock.AllKeys, redlock.PauseOptions{})
		require.NoError(t, err)
		until(32 * time.Second)
		_, err = r.q.Resume(t.Context(), redlock.AllKeys, redlock.PauseOptions{})
		require.NoError(t, err)
		until(46 * time.Second)
		require.Equal(t, []int{15, 35, 45}, c.book.tickSeconds())
	})
}

// A replica has no job of the old name any more after an update that gives it another.
func TestRenamedJobIsNotPausedUnderItsOldName(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		b := &pauseBook{book: c.book}
		r := c.replica(scheduler.WithTracer(b))
		j := r.add(t, tenSecondly, func() {})
		r.Start()
		p, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{By: "x"})
		require.NoError(t, err)
		until(25 * time.Second)
		_, err = r.Update(j.ID(), tenSecondly, scheduler.NewTask(func() {}), gocron.WithName("renamed"))
		require.NoError(t, err)
		until(35 * time.Second)
		told := b.heard()
		require.Len(t, told, 2)
		require.Equal(t, []string{"job", "job"}, []string{told[0].Job, told[1].Job})
		require.Equal(t, []uint64{p.Version, 0}, []uint64{told[0].Pause.Version, told[1].Pause.Version})
	})
}
