//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A leader that is one no more forgets a pause: it asks for no tick that could end it.
func TestFollowerForgetsAPause(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		b := &pauseBook{book: c.book}
		r := c.replica(scheduler.WithTracer(b), scheduler.WithElection("jobs"))
		r.add(t, secondly, func() {})
		r.Start()
		until(3 * time.Second)
		_, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{})
		require.NoError(t, err)
		pass(3 * time.Second)
		require.Len(t, b.heard(), 1)
		c.freeze(0, 1, 2)
		pass(time.Minute)
		told := b.heard()
		require.Len(t, told, 2)
		require.Zero(t, told[1].Pause.Version)
		c.thaw(0, 1, 2)
	})
}

// Ticks of a paused job are skipped on all replicas, and for good; RunNow is not a tick.
func TestPausedJob(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				log := new(journal)
				opts := append(mode.opts, scheduler.WithCatchUp(10*time.Minute, scheduler.CatchUpAll), scheduler.WithLogger(log.logger()))
				var jobs []gocron.Job
				var errs *[]error
				var replicas []*replica
				for _, name := range []string{"a", "b", "c"} {
					time.Sleep(300 * time.Millisecond)
					r := c.named(name, opts...)
					var listen gocron.JobOption
					listen, errs = told()
					jobs = append(jobs, r.add(t, tenSecondly, func() {}, listen))
					r.Start()
					replicas = append(replicas, r)
				}
				until(25 * time.Second)
				_, err := replicas[1].q.Pause(t.Context(), "job/job", redlock.PauseOptions{By: "Ann", Reason: "a test"})
				require.NoError(t, err)
				until(55 * time.Second)
				require.Equal(t, []int{10, 20}, c.book.tickSeconds())
				if mode.opts == nil {
					c.requireSkip(*errs, scheduler.SkipError{Tick: at(50), Reason: scheduler.SkipPaused}, redlock.ErrPaused)
					e := (*errs)[len(*errs)-1]
					require.ErrorContains(t, e, "is paused until it is resumed by Ann: a test")
				}
				require.NotZero(t, c.book.reasons()[scheduler.SkipPaused])
				for i, j := range jobs {
					if err := j.RunNow(); mode.opts == nil {
						require.NoError(t, err, "replica %d", i)
						pass(time.Second)
					}
				}
				late := c.named("d", opts...)
				late.add(t, tenSecondly, func() {})
				late.Start()
				until(75 * time.Second)
				_, err = late.q.Resume(t.Context(), "job/job", redlock.PauseOptions{By: "Bob"})
				require.NoError(t, err)
				until(95 * time.Second)
				var ticks []int
				for _, s := range c.book.tickSeconds() {
					if s >= 0 {
						ticks = append(ticks, s)
					}
				}
				require.Equal(t, []int{10, 20, 80, 90}, ticks, "what was paused is not caught up")
				paused, again := log.lines(`level=WARN msg="scheduler: a job is paused`), log.lines("not paused any more")
				require.NotEmpty(t, paused)
				require.LessOrEqual(t, len(paused), 4, "a line a replica: %s", paused)
				require.Contains(t, paused[0], `by=Ann why="a test"`)
				require.NotEmpty(t, again)
			})
		})
	}
}
