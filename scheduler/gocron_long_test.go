//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

func TestEveryTickRunsOnceOnThreeReplicas(t *testing.T) {
	for name, wire := range map[string]func(*scheduler.Locker) ([]gocron.SchedulerOption, []gocron.JobOption){
		"locker of the scheduler": func(l *scheduler.Locker) ([]gocron.SchedulerOption, []gocron.JobOption) {
			return []gocron.SchedulerOption{gocron.WithDistributedLocker(l)}, nil
		},
		"locker of the job": func(l *scheduler.Locker) ([]gocron.SchedulerOption, []gocron.JobOption) {
			return nil, []gocron.JobOption{gocron.WithDistributedJobLocker(l)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			count := &ledger{runs: make(map[int64]int)}
			for _, l := range lockers(t, 3, scheduler.WithMinHold(400*time.Millisecond)) {
				ofScheduler, ofJob := wire(l)
				s := newScheduler(t, ofScheduler...)
				newJob(t, s, everySecond, count.record, ofJob...)
				s.Start()
			}
			require.Eventually(t, func() bool { return count.ticks() >= 6 }, patience, 10*time.Millisecond)

			count.mu.Lock()
			defer count.mu.Unlock()
			first, last := int64(1<<62), int64(0)
			for tick, runs := range count.runs {
				require.Equal(t, 1, runs, "runs of tick %d in %v", tick, count.runs)
				first, last = min(first, tick), max(last, tick)
			}
			require.Len(t, count.runs, int(last-first+1), "no tick is missing in %v", count.runs)
		})
	}
}
