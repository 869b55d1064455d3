package gocronx_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/timetable"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

var (
	long     = time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	later    = long.Add(time.Hour)
	minutely = gocron.DurationJob(time.Minute)
	every    = gocron.DurationJobSchedule{Duration: time.Minute}
)

func at(hour, minute, second int) time.Time {
	return time.Date(0, 0, 0, hour, minute, second, 0, time.UTC)
}

// ownCron is a user's.
type ownCron struct{ location **time.Location }

func (c ownCron) IsValid(crontab string, location *time.Location, now time.Time) error {
	if crontab != "at noon" {
		return fmt.Errorf("%q is not at noon", crontab)
	}
	if !now.Equal(time.Unix(0, 0)) {
		return fmt.Errorf("it is %v", now)
	}
	if c.location != nil {
		*c.location = location
	}
	return nil
}

func (ownCron) Next(last time.Time) time.Time { return last.Add(24 * time.Hour) }

func TestReaderReadsDefinitions(t *testing.T) {
	times := gocron.NewAtTimes(gocron.NewAtTime(14, 0, 1), gocron.NewAtTime(2, 30, 0))
	atTimes := []time.Time{at(2, 30, 0), at(14, 0, 1)}
	ofDay := []time.Duration{2*time.Hour + 30*time.Minute, 14*time.Hour + time.Second}
	id := uuid.New()
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "value")
	r := newReader(t)
	minute := timetable.Spec{Kind: timetable.Interval, Every: time.Minute, Zone: time.UTC}
	spec := func(change func(*timetable.Spec)) timetable.Spec {
		s := minute
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		definition gocron.JobDefinition
		options    []gocron.JobOption
		want       gocronx.Definition
	}{
		"crontab": {gocron.CronJob("30 2 * * *", false), nil, gocronx.Definition{Schedule: gocron.CronJobSchedule{Crontab: "30 2 * * *"},
			Spec: timetable.Spec{Kind: timetable.Crontab, Text: "30 2 * * *", Seconds: true, Zone: time.UTC}}},
		"crontab with seconds": {gocron.CronJob("1 30 2 * * *", true), nil, gocronx.Definition{Schedule: gocron.CronJobSchedule{Crontab: "1 30 2 * * *"},
			Spec: timetable.Spec{Kind: timetable.Crontab, Text: "1 30 2 * * *", Seconds: true, Zone: time.UTC}}},
		"crontab of a zone": {gocron.CronJob("CRON_TZ=Europe/Berlin 30 2 * * *", true), nil,
			gocronx.Definition{Schedule: gocron.CronJobSchedule{Crontab: "CRON_TZ=Europe/Berlin 30 2 * * *"},
				Spec: timetable.Spec{Kind: timetable.Crontab, Text: "CRON_TZ=Europe/Berlin 30 2 * * *", Seconds: true, Zone: time.UTC}}},
		"own Cron": {gocron.CronJob("at noon", false), []gocron.JobOption{gocron.WithCronImplementation(ownCron{})},
			gocronx.Definition{Schedule: gocron.CronJobSchedule{Crontab: "at noon"}, Spec: timetable.Spec{Kind: timetable.Own, Text: "at noon", Seconds: true, Zone: time.UTC}}},
		"own Cron without a crontab": {minutely, []gocron.JobOption{gocron.WithCronImplementation(ownCron{})}, gocronx.Definition{Schedule: every}},
		"interval":                   {minutely, nil, gocronx.Definition{Schedule: every}},
		"random": {gocron.DurationRandomJob(time.Minute, time.Hour), nil,
			gocronx.Definition{Schedule: gocron.DurationRandomJobSchedule{Min: time.Minute, Max: time.Hour},
				Spec: timetable.Spec{Kind: timetable.Random, Every: time.Minute, Most: time.Hour, Zone: time.UTC}}},
		"daily": {gocron.DailyJob(2, times), nil, gocronx.Definition{Schedule: gocron.DailyJobSchedule{Interval: 2, AtTimes: atTimes},
			Spec: timetable.Spec{Kind: timetable.Daily, Units: 2, Times: ofDay, Zone: time.UTC}}},
		"weekly": {gocron.WeeklyJob(3, gocron.NewWeekdays(time.Friday, time.Monday), times), nil,
			gocronx.Definition{Schedule: gocron.WeeklyJobSchedule{Interval: 3, DaysOfWeek: []time.Weekday{time.Monday, time.Friday}, AtTimes: atTimes},
				Spec: timetable.Spec{Kind: timetable.Weekly, Units: 3, Times: ofDay, Weekdays: []time.Weekday{time.Monday, time.Friday}, Zone: time.UTC}}},
		"monthly": {gocron.MonthlyJob(4, gocron.NewDaysOfTheMonth(31, 1, -1, -31), times), nil,
			gocronx.Definition{Schedule: gocron.MonthlyJobSchedule{Interval: 4, Days: []int{1, 31}, DaysFromEnd: []int{-31, -1}, AtTimes: atTimes},
				Spec: timetable.Spec{Kind: timetable.Monthly, Units: 4, Times: ofDay, Days: []int{1, 31, -31, -1}, Zone: time.UTC}}},
		"once, long ago": {gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(later, long, later)), nil,
			gocronx.Definition{Schedule: gocron.OneTimeJobSchedule{StartAt: []time.Time{long, later}},
				Spec: timetable.Spec{Kind: timetable.Once, At: []time.Time{long, later}, Zone: time.UTC}}},
		"once, at once": {gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), nil,
			gocronx.Definition{Schedule: gocron.OneTimeJobSchedule{StartAt: []time.Time{}},
				Spec: timetable.Spec{Kind: timetable.Once, At: []time.Time{}, AtOnce: true, Zone: time.UTC}}},
		"at once": {minutely, []gocron.JobOption{gocron.WithStartAt(gocron.WithStartImmediately())},
			gocronx.Definition{Schedule: every, Spec: spec(func(s *timetable.Spec) { s.AtOnce = true })}},
		"start and stop, long ago": {minutely, []gocron.JobOption{
			gocron.WithStartAt(gocron.WithStartDateTime(long)), gocron.WithStopAt(gocron.WithStopDateTime(later)),
		}, gocronx.Definition{Schedule: every, Spec: spec(func(s *timetable.Spec) { s.Start, s.Stop = long, later })}},
		"start in the past": {minutely, []gocron.JobOption{gocron.WithStartAt(gocron.WithStartDateTimePast(long))},
			gocronx.Definition{Schedule: every, Spec: spec(func(s *timetable.Spec) { s.Start = long })}},
		"interval from completion": {minutely, []gocron.JobOption{gocron.WithIntervalFromCompletion()},
			gocronx.Definition{Schedule: every, Spec: spec(func(s *timetable.Spec) { s.FromEnd = true })}},
		"limited runs": {minutely, []gocron.JobOption{gocron.WithLimitedRuns(3)}, gocronx.Definition{Schedule: every, LimitedRuns: 3}},
		"singleton": {minutely, []gocron.JobOption{gocron.WithSingletonMode(gocron.LimitModeWait)},
			gocronx.Definition{Schedule: every, Singleton: true, SingletonMode: gocron.LimitModeWait}},
		"daylight saving": {minutely, []gocron.JobOption{gocron.WithDaylightSavingsTimePolicy(gocron.DaylightSavingsTimeRunAfterTransition)},
			gocronx.Definition{Schedule: every, Spec: spec(func(s *timetable.Spec) { s.Daylight = timetable.DaylightLater })}},
		"without locking": {minutely, []gocron.JobOption{gocron.WithDisabledDistributedJobLocker(true)}, gocronx.Definition{Schedule: every, WithoutLocking: true}},
		"context":         {minutely, []gocron.JobOption{gocron.WithContext(ctx)}, gocronx.Definition{Schedule: every, Context: ctx}},
		"identity": {minutely, []gocron.JobOption{gocron.WithName("first"), gocron.WithTags("a", "b"), gocron.WithIdentifier(id), gocron.WithName("last")},
			gocronx.Definition{Schedule: every, Name: "last", Tags: []string{"a", "b"}, ID: id}},
		"own": {minutely, []gocron.JobOption{gocronx.Option("WithB", "b"), gocron.WithContext(ctx), gocronx.Option("WithA", 1), gocronx.Option("WithB", nil)},
			gocronx.Definition{Schedule: every, Context: ctx, Own: []any{"b", 1, nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := r.Read(tc.definition, gocron.NewTask(func() {}), tc.options...)
			require.NoError(t, err)
			require.NotNil(t, d.Task)
			tc.want.Task = d.Task
			if tc.want.Schedule == any(every) && tc.want.Spec.Kind == timetable.Crontab { // it says nothing
				tc.want.Spec = minute
			}
			require.Equal(t, name == "own Cron", d.Spec.Next != nil)
			d.Spec.Next = nil
			got, want := reflect.ValueOf(*d), reflect.ValueOf(tc.want)
			for i := range got.NumField() {
				if f := got.Type().Field(i); f.IsExported() {
					require.Equal(t, want.Field(i).Interface(), got.Field(i).Interface(), f.Name)
				}
			}
		})
	}
}

func TestOwnCronIsAskedInTheLocation(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	r, err := gocronx.NewReader(berlin)
	require.NoError(t, err)
	var asked *time.Location
	_, err = r.Read(gocron.CronJob("at noon", false), gocron.NewTask(func() {}), gocron.WithCronImplementation(ownCron{&asked}))
	require.NoError(t, err)
	require.Equal(t, berlin, asked)
}

func TestBareGocronRefusesOwnOptions(t *testing.T) {
	s, err := gocron.NewScheduler()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
	for name, opts := range map[string][]gocron.JobOption{
		"alone":          {gocronx.Option("WithCatchUp", 1)},
		"with a context": {gocron.WithContext(t.Context()), gocronx.Option("WithCatchUp", 1)},
	} {
		_, err = s.NewJob(minutely, gocron.NewTask(func() {}), opts...)
		require.EqualError(t, err, "scheduler: WithCatchUp: gocron alone cannot do it: make the scheduler with scheduler.New in place of gocron.NewScheduler", name)
		var invalid *timetable.OptionError
		require.ErrorAs(t, err, &invalid)
	}
}

// foreignContext is one for whose end package context needs a goroutine.
type foreignContext struct {
	context.Context
	done chan struct{}
}

func (c foreignContext) Done() <-chan struct{} { return c.done }

// TestMain finds the goroutine of a context that is kept.
func TestReaderKeepsNothing(t *testing.T) {
	ctx := foreignContext{t.Context(), make(chan struct{})}
	d, err := newReader(t).Read(minutely, gocron.NewTask(func(context.Context) {}), gocron.WithContext(ctx))
	require.NoError(t, err)
	require.Equal(t, ctx, d.Context)
}

func TestReadSettings(t *testing.T) {
	s, err := gocronx.ReadSettings()
	require.NoError(t, err)
	require.Equal(t, gocronx.Settings{Monitor: s.Monitor}, *s)
	require.NotNil(t, s.Monitor)

	m := &recorder{}
	s, err = gocronx.ReadSettings(gocron.WithLimitConcurrentJobs(3, gocron.LimitModeWait), gocron.WithSchedulerMonitor(m))
	require.NoError(t, err)
	require.Equal(t, uint(3), s.Limit)
	require.Equal(t, gocron.LimitModeWait, s.LimitMode)
	require.Same(t, m, s.Monitor)

	s, err = gocronx.ReadSettings(gocron.WithStopTimeout(-1))
	require.NoError(t, err)
	_, err = gocronx.NewExecutor(s, time.UTC, time.Second, nil)
	require.ErrorIs(t, err, gocron.ErrWithStopTimeoutZeroOrNegative)
}
