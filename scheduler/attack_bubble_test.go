package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// Names that nodes cannot have, or that nothing could show, are refused; others work.
func TestNamesOfJobs(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		var wrong *scheduler.OptionError
		for _, name := range []string{"", "\xff\xfe"} {
			_, err := r.NewJob(secondly, gocron.NewTask(func() {}), gocron.WithName(name))
			require.Error(t, err, "%q", name)
		}
		names := []string{"a b", "a\nb", "a\x00b", "{a}", "}", "a}b{", "pause/job/a", "ü/☃", "%s", "job/job", "*"}
		for _, name := range names {
			r.add(t, secondly, func() {}, gocron.WithName(name))
		}
		_, err := r.NewJob(minutely, gocron.NewTask(func() {}), gocron.WithName("a b"))
		require.ErrorAs(t, err, &wrong, "two jobs of one name")
		r.Start()
		time.Sleep(3 * time.Second)
		ran := make(map[string]int)
		for i := range c.book.ticks() {
			run, _ := c.book.run(i)
			ran[run.Job]++
		}
		for _, name := range names {
			require.GreaterOrEqual(t, ran[name], 2, "%q", name)
		}
	})
}

// A listener that blocks before a run that was ordered does not keep Shutdown from returning in
// time.
func TestListenerThatBlocksAnOrderedRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithStopTimeout(2*time.Second))
		free := make(chan struct{})
		j := r.add(t, minutely, func() {}, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { <-free })))
		r.Start()
		time.Sleep(time.Second)
		came := make(chan error, 1)
		go func() { came <- j.RunNow() }()
		time.Sleep(time.Second)
		began := time.Now()
		require.ErrorIs(t, r.Shutdown(), gocron.ErrStopJobsTimedOut)
		require.Less(t, time.Since(began), 10*time.Second)
		var skip *scheduler.SkipError
		require.ErrorAs(t, <-came, &skip)
		require.Equal(t, scheduler.SkipStopped, skip.Reason)
		close(free)
		time.Sleep(5 * time.Second)
		require.Empty(t, c.book.ticks(), "what was refused is not run")
	})
}
