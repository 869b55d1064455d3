//go:build long

package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// A schedule is new after an update or a deploy: its ticks of before were never due, however far
// back the catch-up window goes.
func TestNewScheduleHasMissedNothing(t *testing.T) {
	for _, deploy := range []bool{false, true} {
		t.Run(fmt.Sprint("by a deploy: ", deploy), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				start := func(crontab string) (*replica, gocron.Job) {
					r := c.replica(scheduler.WithCatchUp(24*time.Hour, scheduler.CatchUpAll))
					j := r.add(t, gocron.CronJob(crontab, false), func() {})
					r.Start()
					return r, j
				}
				r, j := start("*/10 * * * *")
				until(18*time.Minute + 30*time.Second)
				require.Len(t, c.book.runs, 1)
				const minutely = "* * * * *"
				if deploy {
					require.NoError(t, r.Shutdown())
					r, _ = start(minutely)
				} else {
					_, err := r.Update(j.ID(), gocron.CronJob(minutely, false), scheduler.NewTask(func() {}), gocron.WithName("job"))
					require.NoError(t, err)
				}
				pass(5 * time.Second)
				require.Len(t, c.book.runs, 1, "no tick has come since")
				until(20*time.Minute + 30*time.Second)
				require.Len(t, c.book.runs, 3)
				require.NoError(t, r.Shutdown())
				until(22*time.Minute + 30*time.Second)
				start(minutely)
				pass(5 * time.Second)
				require.Len(t, c.book.runs, 5, "what is missed later is caught up")
			})
		})
	}
}
