package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// whatToDo is what to do when gocron has changed. It is all that a reader of a failed upgrade gets.
const whatToDo = "gocron has changed what its options set: %v. Until this package knows the new gocron, New and NewJob refuse all options of it. " +
	"Read gocron's options and internalJob, adjust the fields and knownGocron in settings.go (isOwn in probe.go for the name of a task), " +
	"and run TestGocronStillTellsWhatItsOptionsSet again; or stay with gocron " + knownGocron

// This fails, and TestMain runs nothing else then, after an upgrade of gocron that has changed what
// its options set.
func TestGocronStillTellsWhatItsOptionsSet(t *testing.T) {
	if changes := GocronChanges(); len(changes) > 0 {
		t.Fatalf(whatToDo, changes)
	}
}

// GocronChanges returns what this package knows of gocron and is not so.
func GocronChanges() []string {
	now := time.Now()
	changes := changesOf(schedulerFields, map[string]gocron.SchedulerOption{
		fieldElector:       gocron.WithDistributedElector(nobody{}),
		fieldLocker:        gocron.WithDistributedLocker(&Locker{}),
		fieldClock:         gocron.WithClock(clockwork.NewRealClock()),
		fieldLocation:      gocron.WithLocation(time.UTC),
		fieldStopTimeout:   gocron.WithStopTimeout(time.Second),
		fieldGlobalOptions: gocron.WithGlobalJobOptions(gocron.WithTags("tag")),
		fieldMonitor:       gocron.WithSchedulerMonitor(noMonitor{}),
		fieldLimitMode:     gocron.WithLimitConcurrentJobs(1, gocron.LimitModeWait),
	}, func(o gocron.SchedulerOption) (settings, error) {
		return schedulerSettings([]gocron.SchedulerOption{o})
	})
	changes = append(changes, changesOf(jobFields, map[string]gocron.JobOption{
		fieldJobLocker:              gocron.WithDistributedJobLocker(&Locker{}),
		fieldContext:                gocron.WithContext(context.Background()),
		fieldLimitedRuns:            gocron.WithLimitedRuns(1),
		fieldIntervalFromCompletion: gocron.WithIntervalFromCompletion(),
		fieldStartImmediately:       gocron.WithStartAt(gocron.WithStartImmediately()),
		fieldStartTime:              gocron.WithStartAt(gocron.WithStartDateTime(now.Add(time.Hour))),
		fieldStopTime:               gocron.WithStopAt(gocron.WithStopDateTime(now.Add(time.Hour))),
		fieldDisabledLocker:         gocron.WithDisabledDistributedJobLocker(true),
		fieldSingleton + " " + fieldSingletonLimitMode: gocron.WithSingletonMode(gocron.LimitModeWait),
		fieldDaylightSaving:                            gocron.WithDaylightSavingsTimePolicy(gocron.DaylightSavingsTimeSkip),
	}, func(o gocron.JobOption) (settings, error) { return jobSettings([]gocron.JobOption{o}, now) })...)
	if own, err := isOwnTask(NewTask(func() {})); !own || err != nil {
		changes = append(changes, "the name of a task of NewTask")
	}
	if own, err := isOwnTask(gocron.NewTask(func() {})); own || err != nil {
		changes = append(changes, "the name of a task of gocron.NewTask")
	}
	return changes
}

// changesOf tries options, by the fields that each is to set, and no others.
func changesOf[O any](fields []string, options map[string]O, settingsOf func(O) (settings, error)) (changes []string) {
	for _, field := range fields {
		known := false
		for sets, o := range options {
			s, _ := settingsOf(o)
			want := slices.Contains(strings.Fields(sets), field)
			known = known || want
			switch got := s.has(field); {
			case want && !got:
				changes = append(changes, field+" is not set by its option")
			case got && !want:
				changes = append(changes, fmt.Sprintf("%s is set by the option of %s", field, sets))
			}
		}
		if !known {
			changes = append(changes, field+" has no option here")
		}
	}
	return changes
}

func isOwnTask(task gocron.Task) (bool, error) {
	s, err := gocron.NewScheduler()
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Shutdown() }()
	name, err := nameOf(s, task)
	return isOwn(name), err
}

// What the test above says of a gocron in which a field has another name.
func TestFailureForAnUnknownGocronSaysWhatToDo(t *testing.T) {
	before := jobFields
	defer func() { jobFields = before }()
	jobFields = append(slices.Clone(before), "maxRuns")
	require.Equal(t, []string{"maxRuns has no option here"}, GocronChanges())

	type later struct{ limit int } // was limitRunsTo
	changes := changesOf([]string{fieldLimitedRuns}, map[string]func(*later) error{fieldLimitedRuns: func(l *later) error { l.limit = 1; return nil }},
		func(o func(*later) error) (settings, error) { return schedulerSettings([]func(*later) error{o}) })
	require.Equal(t, "gocron has changed what its options set: [limitRunsTo is not set by its option]. Until this package knows the new gocron, New and NewJob refuse "+
		"all options of it. Read gocron's options and internalJob, adjust the fields and knownGocron in settings.go (isOwn in probe.go for the name of a task), "+
		"and run TestGocronStillTellsWhatItsOptionsSet again; or stay with gocron v2.22.0", fmt.Sprintf(whatToDo, changes))
}

// What gocron.WithSingletonMode asks for in the words of this package.
func TestSingletonModeIsAnOverlap(t *testing.T) {
	for mode, want := range map[gocron.LimitMode]Overlap{gocron.LimitModeReschedule: OverlapSkip, gocron.LimitModeWait: OverlapQueue} {
		s, err := jobSettings([]gocron.JobOption{gocron.WithSingletonMode(mode)}, time.Now())
		require.NoError(t, err)
		got, asked := s.overlap()
		require.True(t, asked)
		require.Equal(t, want, got)
	}
}

type nobody struct{ gocron.Elector }

// Options of a later gocron whose fields are called otherwise are refused: it cannot be known what
// they ask for. They were taken, with a warning.
func TestOptionsOfAnUnknownGocronAreRefused(t *testing.T) {
	type later struct{ locks string }
	fields := []string{"locks", "locker", "exec.clock", "mode"}
	target := new(later)
	apply := func(o func(*later)) { o(target) }
	s, err := newSettings(target, fields, []func(*later){func(l *later) { l.locks = "x" }}, apply)
	const text = `scheduler: gocron: this version does not tell ["locker" "exec.clock" "mode"] of its options, so that those which do not fit several ` +
		`replicas cannot be refused: use gocron v2.22.0 (go get github.com/go-co-op/gocron/v2@v2.22.0), or a Tenure that knows yours`
	require.EqualError(t, err, text)
	require.True(t, s.has("locks"))
	require.False(t, s.has("exec.clock"))
	require.Zero(t, s.number("mode"))

	_, err = newSettings(new(later), fields, nil, apply)
	require.NoError(t, err, "nothing was asked for")
}

// An option that does not work on a zero value is refused too.
func TestOptionThatPanicsIsRefused(t *testing.T) {
	type later struct{ locks *string }
	fine, panics := func(*later) error { return nil }, func(l *later) error { *l.locks = "x"; return nil }
	_, err := schedulerSettings([]func(*later) error{fine, panics})
	require.ErrorContains(t, err, "scheduler: gocron: option 1 panics: runtime error: invalid memory address")
}

// renamed makes one of the fields that are looked for one that gocron does not have.
func renamed(t *testing.T, fields *[]string) {
	t.Helper()
	before := *fields
	t.Cleanup(func() { *fields = before })
	*fields = append(slices.Clone(before), "later")
}

func TestNewJobRefusesOptionsOfAnUnknownGocron(t *testing.T) {
	renamed(t, &jobFields)
	cfg, err := newConfig(nil, nil)
	require.NoError(t, err)
	inner, err := gocron.NewScheduler()
	require.NoError(t, err)
	defer func() { require.NoError(t, inner.Shutdown()) }()
	s := &Scheduler{Scheduler: inner, state: &state{cfg: cfg, inner: inner}}
	_, _, _, err = newJob(s, [16]byte{}, gocron.DurationJob(time.Second), NewTask(func() {}), []gocron.JobOption{gocron.WithName("job")})
	require.ErrorContains(t, err, `this version does not tell ["later"] of its options`)
}

func TestNewRefusesOptionsOfAnUnknownGocron(t *testing.T) {
	renamed(t, &schedulerFields)
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
