package scheduler

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// If this fails after an upgrade of gocron, it has renamed what its options set: adjust the paths in traits.go and NewTask. Else options
// that do not fit several replicas are taken without a word but for a warning in the log.
func TestGocronStillTellsWhatItsOptionsSet(t *testing.T) {
	schedulers := map[string]gocron.SchedulerOption{
		"gocron.WithDistributedElector": gocron.WithDistributedElector(nobody{}),
		"gocron.WithDistributedLocker":  gocron.WithDistributedLocker(&Locker{}),
		"gocron.WithClock":              gocron.WithClock(clockwork.NewRealClock()),
		"gocron.WithLocation":           gocron.WithLocation(time.UTC),
		"gocron.WithStopTimeout":        gocron.WithStopTimeout(time.Second),
		"gocron.WithGlobalJobOptions":   gocron.WithGlobalJobOptions(gocron.WithTags("tag")),
	}
	for _, r := range schedulerRefusals {
		require.Contains(t, schedulers, r.option)
		f := triedScheduler([]gocron.SchedulerOption{schedulers[r.option]})
		require.True(t, f.set(r.path...), r.option)
		require.Empty(t, f.warning(), r.option)
		for other, o := range schedulers {
			if other != r.option {
				require.False(t, triedScheduler([]gocron.SchedulerOption{o}).set(r.path...), "%s looks like %s", other, r.option)
			}
		}
	}
	require.True(t, triedScheduler([]gocron.SchedulerOption{gocron.WithLimitConcurrentJobs(1, gocron.LimitModeWait)}).set("exec", "limitMode"))

	jobs := map[string]gocron.JobOption{
		"gocron.WithDistributedJobLocker":   gocron.WithDistributedJobLocker(&Locker{}),
		"gocron.WithContext":                gocron.WithContext(t.Context()),
		"gocron.WithLimitedRuns":            gocron.WithLimitedRuns(1),
		"gocron.WithIntervalFromCompletion": gocron.WithIntervalFromCompletion(),
		"gocron.WithSingletonMode":          gocron.WithSingletonMode(gocron.LimitModeWait),
	}
	now := time.Now()
	for _, r := range jobRefusals {
		require.Contains(t, jobs, r.option)
		f := triedJob([]gocron.JobOption{jobs[r.option]}, now)
		require.True(t, f.set(r.path...), r.option)
		require.Empty(t, f.warning(), r.option)
		for other, o := range jobs {
			if other != r.option {
				require.False(t, triedJob([]gocron.JobOption{o}, now).set(r.path...), "%s looks like %s", other, r.option)
			}
		}
	}
	for field, o := range map[string]gocron.JobOption{
		"startImmediately": gocron.WithStartAt(gocron.WithStartImmediately()),
		"startTime":        gocron.WithStartAt(gocron.WithStartDateTime(now.Add(time.Hour))),
		"stopTime":         gocron.WithStopAt(gocron.WithStopDateTime(now.Add(time.Hour))),
		"disabledLocker":   gocron.WithDisabledDistributedJobLocker(true),
	} {
		require.True(t, triedJob([]gocron.JobOption{o}, now).set(field), field)
	}
	require.True(t, isOwn(NewTask(func() {})), "gocron.Task does not tell its function any more: NewJob refuses every task")
	require.False(t, isOwn(gocron.NewTask(func() {})))
	require.False(t, isOwn(nil))
}

type nobody struct{ gocron.Elector }

// Options of a later gocron whose fields are called otherwise: there is a warning, and nothing is refused.
func TestRenamedFieldsOfGocronAreLogged(t *testing.T) {
	type later struct{ locks string }
	f := tried([]func(*later) error{func(l *later) error { l.locks = "x"; return nil }, nil})
	require.NoError(t, f.check([]refusal{{"gocron.WithDistributedJobLocker", []string{"locker"}, "is refused"}}))
	require.False(t, f.set("exec", "clock"))
	require.Equal(t, `scheduler: this version of gocron does not tell ["locker" "exec"] of its options, so that unsuitable ones are not refused`, f.warning())
	require.Error(t, f.check([]refusal{{"later", []string{"locks"}, "is refused"}}))

	panics := tried([]func(*later) error{func(*later) error { panic("needs more") }})
	require.False(t, panics.set("locks"))
	require.Empty(t, panics.warning())

	var log strings.Builder
	s := &state{cfg: &config{commonConfig: commonConfig{logger: slog.New(slog.NewTextHandler(&log, nil))}}}
	s.warn(panics)
	require.Empty(t, log.String())
	for range 2 {
		s.warn(f)
	}
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), "once: %s", log.String())
}

// What NewJob reads of a job's options has been read when it warns.
func TestNewJobWarnsOfRenamedFields(t *testing.T) {
	refusals := jobRefusals
	t.Cleanup(func() { jobRefusals = refusals })
	jobRefusals = []refusal{{"gocron.WithLater", []string{"later"}, "is refused"}}
	var log strings.Builder
	cfg, err := newConfig([]Option{WithLogger(slog.New(slog.NewTextHandler(&log, nil)))})
	require.NoError(t, err)
	inner, err := gocron.NewScheduler()
	require.NoError(t, err)
	s := &Scheduler{Scheduler: inner, state: &state{cfg: cfg, inner: inner}}
	_, err = s.newJob([16]byte{}, gocron.DurationJob(time.Second), NewTask(func() {}), []gocron.JobOption{gocron.WithName("job")})
	require.NoError(t, err)
	require.Contains(t, log.String(), "does not tell [\\\"later\\\"] of its options")
	require.NoError(t, inner.Shutdown())
}

// The options that name times are left out when ticks are computed, and no others.
func TestTimeless(t *testing.T) {
	now := time.Now()
	kept := []gocron.JobOption{gocron.WithName("job"), gocron.WithTags("a"), gocron.WithDaylightSavingsTimePolicy(gocron.DaylightSavingsTimeSkip)}
	left := []gocron.JobOption{gocron.WithStartAt(gocron.WithStartImmediately()), gocron.WithStartAt(gocron.WithStartDateTimePast(now.Add(-time.Hour))),
		gocron.WithStopAt(gocron.WithStopDateTime(now.Add(time.Hour)))}
	got := timeless(append(left, kept...), now)
	require.Len(t, got, len(kept))
	for i := range got {
		require.Equal(t, reflect.ValueOf(kept[i]).Pointer(), reflect.ValueOf(got[i]).Pointer())
	}
}
