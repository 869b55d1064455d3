package scheduler

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// changed is what to do when the test fails.
const changed = "gocron is not the one that this package knows any more: adjust the paths in traits.go, isOwn and knownGocron. " +
	"Until then New and NewJob refuse all options"

// This fails after an upgrade of gocron that has renamed what its options set.
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
		require.True(t, f.set(r.path...), "%s: %s", r.option, changed)
		require.NoError(t, f.unknown(), changed)
		for other, o := range schedulers {
			if other != r.option {
				require.False(t, triedScheduler([]gocron.SchedulerOption{o}).set(r.path...), "%s looks like %s", other, r.option)
			}
		}
	}
	require.True(t, triedScheduler([]gocron.SchedulerOption{gocron.WithLimitConcurrentJobs(1, gocron.LimitModeWait)}).set("exec", "limitMode"), changed)

	jobs := map[string]gocron.JobOption{
		"gocron.WithDistributedJobLocker":   gocron.WithDistributedJobLocker(&Locker{}),
		"gocron.WithContext":                gocron.WithContext(t.Context()),
		"gocron.WithLimitedRuns":            gocron.WithLimitedRuns(1),
		"gocron.WithIntervalFromCompletion": gocron.WithIntervalFromCompletion(),
	}
	now := time.Now()
	for _, r := range jobRefusals {
		require.Contains(t, jobs, r.option)
		f := triedJob([]gocron.JobOption{jobs[r.option]}, now)
		require.True(t, f.set(r.path...), "%s: %s", r.option, changed)
		require.NoError(t, f.unknown(), changed)
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
		require.True(t, triedJob([]gocron.JobOption{o}, now).set(field), "%s: %s", field, changed)
	}
	for mode, want := range map[gocron.LimitMode]Overlap{gocron.LimitModeReschedule: OverlapSkip, gocron.LimitModeWait: OverlapQueue} {
		f := triedJob([]gocron.JobOption{gocron.WithSingletonMode(mode)}, now)
		got, asked := singleton(f)
		require.True(t, asked, changed)
		require.Equal(t, want, got, changed)
		require.NoError(t, f.unknown(), changed)
	}
	probe, err := gocron.NewScheduler()
	require.NoError(t, err)
	defer func() { _ = probe.Shutdown() }()
	for _, own := range []bool{true, false} {
		task := gocron.NewTask(func() {})
		if own {
			task = NewTask(func() {})
		}
		name, err := nameOf(probe, task)
		require.NoError(t, err)
		require.Equal(t, own, isOwn(name), "%q: %s", name, changed)
	}
}

type nobody struct{ gocron.Elector }

// Options of a later gocron whose fields are called otherwise are refused: nobody knows what they
// ask for. They were taken, with a warning.
func TestOptionsOfAnUnknownGocronAreRefused(t *testing.T) {
	type later struct{ locks string }
	f := tried([]func(*later) error{func(l *later) error { l.locks = "x"; return nil }, nil})
	require.NoError(t, f.check([]refusal{{"gocron.WithDistributedJobLocker", []string{"locker"}, "is refused"}}))
	require.False(t, f.set("exec", "clock"))
	require.Zero(t, f.number("mode"))
	const text = `scheduler: gocron: this version does not tell ["locker" "exec" "mode"] of its options, so that those which do not fit several ` +
		`replicas cannot be refused: use gocron v2.22.0 (go get github.com/go-co-op/gocron/v2@v2.22.0), or a Tenure that knows yours`
	require.EqualError(t, f.unknown(), text)
	require.Error(t, f.check([]refusal{{"later", []string{"locks"}, "is refused"}}))

	none := tried([]func(*later) error{})
	require.False(t, none.set("exec"))
	require.NoError(t, none.unknown(), "nothing was asked for")
}

// An option that does not work on a zero value is refused too.
func TestOptionThatPanicsIsRefused(t *testing.T) {
	type later struct{ locks *string }
	f := tried([]func(*later) error{nil, func(l *later) error { *l.locks = "x"; return nil }})
	require.ErrorContains(t, f.check(nil), "scheduler: gocron: option 1 panics: runtime error: invalid memory address")
}

// renamed makes one of the fields that are looked for one that gocron does not have.
func renamed(t *testing.T, refusals *[]refusal) {
	t.Helper()
	before := *refusals
	t.Cleanup(func() { *refusals = before })
	*refusals = []refusal{{"gocron.WithLater", []string{"later"}, "is refused"}}
}

func TestNewJobRefusesOptionsOfAnUnknownGocron(t *testing.T) {
	renamed(t, &jobRefusals)
	cfg, err := newConfig(nil)
	require.NoError(t, err)
	inner, err := gocron.NewScheduler()
	require.NoError(t, err)
	defer func() { require.NoError(t, inner.Shutdown()) }()
	s := &Scheduler{Scheduler: inner, state: &state{cfg: cfg, inner: inner}}
	_, _, _, err = s.newJob([16]byte{}, gocron.DurationJob(time.Second), NewTask(func() {}), []gocron.JobOption{gocron.WithName("job")})
	require.ErrorContains(t, err, `this version does not tell ["later"] of its options`)
}

func TestNewRefusesOptionsOfAnUnknownGocron(t *testing.T) {
	renamed(t, &schedulerRefusals)
	fleet := redlocktest.Start(t, 3)
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	_, err = New(q, WithGocron(gocron.WithLogger(gocron.NewLogger(gocron.LogLevelError))))
	require.ErrorContains(t, err, `this version does not tell ["later"] of its options`)
	s, err := New(q)
	require.NoError(t, err, "without options of gocron nothing is to be refused")
	require.NoError(t, s.Shutdown())
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
