package jobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// So many that two processors carry them.
func TestJobs(t *testing.T) {
	all, rate := jobs.All(), 0.0
	for _, j := range all {
		rate += 1 / j.Every.Seconds()
	}
	require.LessOrEqual(t, rate, 12.0, "ticks a second")
	names := make(map[string]bool)
	for _, j := range all {
		require.False(t, names[j.Name])
		names[j.Name] = true
		require.True(t, strings.HasPrefix(j.Name, string(j.Kind)))
		if j.Window > 0 {
			require.Greater(t, j.Within(), j.Every, "%s: there is a tick to be caught up at any time", j.Name)
		} else {
			require.Equal(t, jobs.Window, j.Within())
		}
		if j.Kind == jobs.Cron && j.Every < time.Minute {
			require.Zero(t, time.Minute%j.Every, "%s: a crontab begins anew each minute", j.Name)
		}
		require.Equal(t, &j, jobs.Find(all, j.Name))
	}
	for n := range plan.PausedJobs {
		require.True(t, jobs.Find(all, jobs.PausedName(n)).Paused)
	}
	require.Nil(t, jobs.Find(all, "nobody"))
}

// What the judge takes for the ticks of a job is when gocron runs it.
func TestTicksAreThoseOfGocron(t *testing.T) {
	start := time.Date(2026, 3, 1, 23, 59, 41, 0, time.UTC)
	for _, j := range jobs.All() {
		if j.Kind != jobs.Cron {
			continue
		}
		s, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(start)), gocron.WithLocation(time.UTC))
		require.NoError(t, err)
		made, err := s.NewJob(j.Definition(), gocron.NewTask(func() {}))
		require.NoError(t, err)
		s.Start()
		runs, err := made.NextRuns(20)
		require.NoError(t, err)
		var got []int64
		for _, at := range runs {
			got = append(got, at.UnixMilli())
		}
		require.Equal(t, j.Ticks(start.Add(time.Millisecond).UnixMilli(), got[len(got)-1]), got, j.Name)
		require.NoError(t, s.Shutdown())
	}
}

// With each second deploy a schedule is the other one.
func TestScheduleThatChanges(t *testing.T) {
	changing := 0
	for _, j := range jobs.All() {
		if j.In(1).Every != j.Every {
			changing++
			require.Equal(t, j.Then, j.In(1).Every)
			require.Equal(t, j, j.In(2))
			require.False(t, j.Ticked())
		}
	}
	require.Equal(t, 2, changing)
}

func TestTicksOfADurationJobHaveAPhase(t *testing.T) {
	j := jobs.Job{Kind: jobs.Duration, Every: 3 * time.Second, Phase: 1400}
	require.Equal(t, []int64{10_400, 13_400}, j.Ticks(7401, 13_400))
	require.Equal(t, []int64{1400}, j.Ticks(0, 4399))
}
