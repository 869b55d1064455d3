package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// A task that panics ends neither the process nor the job, without any listener of gocron's. It
// ended the process of one replica after the other.
func TestPanickingTaskEndsNoProcess(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []gocron.JobOption
	}{
		{"once per tick", nil},
		{"on every replica", []gocron.JobOption{gocron.WithDisabledDistributedJobLocker(true)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				log := new(journal)
				r := c.replica(scheduler.WithLogger(log.logger()))
				calls := 0
				r.add(t, tenSecondly, func() {
					if calls++; calls == 1 {
						panic("ouch")
					}
				}, test.opts...)
				r.Start()
				until(25 * time.Second)
				require.Equal(t, 2, calls)
				lines := log.lines("level=ERROR")
				require.Len(t, lines, 1)
				require.Contains(t, lines[0], `msg="scheduler: the task panicked" job=job`)
				require.Contains(t, lines[0], `error.type=panic error="scheduler: job \"job\": panic: ouch"`)
				require.Contains(t, lines[0], "TestPanickingTaskEndsNoProcess", "the stack is that of the panic")
				if test.opts == nil {
					require.Contains(t, lines[0], "tick="+at(10).Format("2006-01-02T15:04:05"))
					require.True(t, c.book.ends[0].Panicked)
					require.False(t, c.book.ends[1].Panicked)
				}
			})
		})
	}
}

// What a task returns is in the log; gocron has it for listeners only.
func TestErrorOfATaskIsLogged(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		log := new(journal)
		r := c.replica(scheduler.WithLogger(log.logger()))
		j := r.add(t, tenSecondly, func(ctx context.Context) error {
			if run, _ := scheduler.RunFromContext(ctx); run.Tick.Equal(at(10)) {
				return errors.New("no disk")
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		r.Start()
		until(25 * time.Second)
		require.NoError(t, r.RemoveJob(j.ID()))
		synctest.Wait()
		lines := log.lines("the task failed")
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], `level=WARN msg="scheduler: the task failed" job=job tick=`+at(10).Format("2006-01-02T15:04:05"))
		require.Contains(t, lines[0], `error="no disk"`)
		require.Contains(t, lines[1], "level=DEBUG", "it was told to end")
	})
}

// A Shutdown that does not wait any longer says for which jobs.
func TestShutdownNamesTheJobsThatStillRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithStopTimeout(2 * time.Second))
		end := make(chan struct{})
		for _, name := range []string{"stubborn", "deaf"} {
			_, err := r.NewJob(tenSecondly, scheduler.NewTask(func() { <-end }), gocron.WithName(name))
			require.NoError(t, err)
		}
		r.add(t, tenSecondly, func(ctx context.Context) { <-ctx.Done() })
		r.Start()
		until(15 * time.Second)
		err := r.StopJobs()
		require.ErrorIs(t, err, gocron.ErrStopJobsTimedOut)
		require.EqualError(t, err, `scheduler: still running: ["deaf" "stubborn"]: gocron: timed out waiting for jobs to finish`)
		require.False(t, strings.Contains(err.Error(), `"job"`), "it ended when it was told to")
		close(end)
		synctest.Wait()
		require.NoError(t, r.StopJobs())
	})
}
