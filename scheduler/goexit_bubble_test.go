package scheduler_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// A task that ends its goroutine has failed, and nothing else has: other jobs go on, also where
// gocron runs one at a time, and Shutdown waits for nobody.
func TestTaskThatEndsItsGoroutine(t *testing.T) {
	for name, opts := range map[string][]scheduler.Option{
		"usual":         nil,
		"one at a time": {scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeWait))},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				log := new(journal)
				r := c.replica(append(opts, scheduler.WithLogger(log.logger()))...)
				r.add(t, tenSecondly, runtime.Goexit)
				_, err := r.NewJob(tenSecondly, scheduler.NewTask(func() {}), gocron.WithName("other"))
				require.NoError(t, err)
				r.Start()
				until(35 * time.Second)
				runs := make(map[string]int)
				for _, end := range c.book.ends {
					runs[end.Run.Job]++
					if end.Run.Job == "job" {
						require.ErrorContains(t, end.Err, "runtime.Goexit")
					} else {
						require.NoError(t, end.Err)
					}
				}
				require.Equal(t, map[string]int{"job": 3, "other": 3}, runs)
				require.Len(t, log.lines("the task failed"), 3)
				began := time.Now()
				require.NoError(t, r.Shutdown())
				require.Less(t, time.Since(began), time.Second)
			})
		})
	}
}
