package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// quorumFor opens a Quorum on in-process nodes.
func quorumFor(t *testing.T, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	fleet := redlocktest.Start(t, 3)
	return open(t, fleet.URLs(), append(opts, redlock.WithClientOption(fleet.ClientOption))...)
}

// made makes a Scheduler that is shut down with the test.
func made(t *testing.T, q *redlock.Quorum, opts ...scheduler.Option) *scheduler.Scheduler {
	t.Helper()
	s, err := scheduler.New(q, append([]scheduler.Option{scheduler.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
	return s
}

// requireInvalid requires an *OptionError with exactly this text.
func requireInvalid(t *testing.T, err error, text string) {
	t.Helper()
	var invalid *scheduler.OptionError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, text, err.Error())
	require.Equal(t, "invalid", redlock.ErrorType(err))
}

func TestSchedulerRefusesOptions(t *testing.T) {
	q := quorumFor(t)
	short := quorumFor(t, redlock.WithTTL(2*time.Second))
	var none context.Context
	for text, tc := range map[string]struct {
		q   *redlock.Quorum
		opt scheduler.Option
	}{
		"scheduler: q: is nil: make a Quorum with redlock.Open or redlock.New":                                                      {nil, scheduler.WithLocation(time.UTC)},
		"scheduler: Option: option 0 is nil":                                                                                        {q, nil},
		"scheduler: WithCatchUp: CatchUp(3) is none of CatchUpNone, CatchUpLatest and CatchUpAll":                                   {q, scheduler.WithCatchUp(time.Hour, 3)},
		"scheduler: WithCatchUp: CatchUp(-1) is none of CatchUpNone, CatchUpLatest and CatchUpAll":                                  {q, scheduler.WithCatchUp(time.Hour, -1)},
		"scheduler: WithCatchUp: the window of 0s is not positive":                                                                  {q, scheduler.WithCatchUp(0, scheduler.CatchUpLatest)},
		"scheduler: WithDelivery: Delivery(2) is neither redlock.AtMostOnce nor redlock.AtLeastOnce":                                {q, scheduler.WithDelivery(2)},
		"scheduler: WithDelivery: redlock.AtLeastOnce runs a tick again whose run was cut short: say with WithCatchUp for how long": {q, scheduler.WithDelivery(redlock.AtLeastOnce)},
		"scheduler: WithOverlap: Overlap(2) is neither OverlapSkip nor OverlapQueue":                                                {q, scheduler.WithOverlap(2)},
		"scheduler: WithElection: the name is empty: name what is led":                                                              {q, scheduler.WithElection("")},
		"scheduler: WithClock: nil; leave the option out for the real clock":                                                        {q, scheduler.WithClock(nil)},
		"scheduler: WithLocation: nil; use time.UTC or time.Local":                                                                  {q, scheduler.WithLocation(nil)},
		"scheduler: WithCatchUp: the window of 87600h0m0.000000001s is not between 0 and 87600h0m0s":                                {q, scheduler.WithCatchUp(scheduler.MaxSpan+1, scheduler.CatchUpLatest)},
		"scheduler: WithStopTimeout: 24h0m0.000000001s is above the maximum of 24h0m0s":                                             {q, scheduler.WithStopTimeout(scheduler.MaxTimeout + 1)},
		"scheduler: WithStopTimeout: 0s is not positive":                                                                            {q, scheduler.WithStopTimeout(0)},
		"scheduler: WithContext: nil":                                                                                               {q, scheduler.WithContext(none)},
		"scheduler: WithTracer: nil; leave the option out for no tracing":                                                           {q, scheduler.WithTracer(nil)},
		"scheduler: WithGlobalJobOptions: option 1 is nil":                                                                          {q, scheduler.WithGlobalJobOptions(gocron.WithTags("a"), nil)},
		"scheduler: WithGocron: option 1 is nil":                                                                                    {q, scheduler.WithGocron(gocron.WithLogger(gocron.NewLogger(gocron.LogLevelError)), nil)},
		"scheduler: WithTTL: 1ms is below the minimum of 1s":                                                                        {q, scheduler.WithTTL(time.Millisecond)},
		"scheduler: WithMinHold: 3s is not below the TTL of 2s":                                                                     {short, scheduler.WithLeaseOptions(redlock.WithMinHold(3 * time.Second))},
		"scheduler: gocron.WithDistributedElector: gocron would not lock any job then: use WithElection":                            {q, scheduler.WithGocron(gocron.WithDistributedElector(leader{}))},
		"scheduler: gocron.WithDistributedLocker: the Scheduler is its own locker: leave it out":                                    {q, scheduler.WithGocron(gocron.WithDistributedLocker(forbidden{t}))},
		"scheduler: gocron.WithClock: ticks are computed too: use WithClock of this package":                                        {q, scheduler.WithGocron(gocron.WithClock(skewed{}))},
		"scheduler: gocron.WithLocation: ticks are computed too: use WithLocation of this package":                                  {q, scheduler.WithGocron(gocron.WithLocation(time.UTC))},
		"scheduler: gocron.WithStopTimeout: leases go by it too: use WithStopTimeout of this package":                               {q, scheduler.WithGocron(gocron.WithStopTimeout(time.Second))},
		"scheduler: gocron.WithGlobalJobOptions: each job's options are looked at: use WithGlobalJobOptions of this package":        {q, scheduler.WithGocron(gocron.WithGlobalJobOptions(gocron.WithTags("tag")))},
	} {
		t.Run(text, func(t *testing.T) {
			s, err := scheduler.New(tc.q, tc.opt)
			require.Nil(t, s)
			requireInvalid(t, err, text)
		})
	}
	_, err := scheduler.New(q, scheduler.WithGocron(gocron.WithLimitConcurrentJobs(0, gocron.LimitModeWait)))
	require.ErrorIs(t, err, gocron.ErrWithLimitConcurrentJobsZero, "gocron's own errors are passed on")
}

func TestSchedulerRefusesJobs(t *testing.T) {
	s := made(t, quorumFor(t))
	_, err := s.NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName("there"))
	require.NoError(t, err)
	name := gocron.WithName("job")
	task := scheduler.NewTask(func() {})
	midnight := gocron.NewAtTimes(gocron.NewAtTime(0, 0, 0))
	tomorrow := time.Now().Add(24 * time.Hour)
	immediately := gocron.WithStartAt(gocron.WithStartImmediately())
	counted := " periods is counted from the start of each replica: give gocron.WithStartAt(gocron.WithStartDateTimePast(...)) a time that is the same on all, or use gocron.CronJob"
	for text, tc := range map[string]struct {
		definition gocron.JobDefinition
		task       gocron.Task
		opts       []gocron.JobOption
	}{
		"scheduler: gocron.WithDistributedJobLocker: the Scheduler is its own locker: leave it out, or use a bare gocron scheduler": {secondly, task, []gocron.JobOption{name, gocron.WithDistributedJobLocker(forbidden{t})}},
		"scheduler: gocron.WithContext: the Scheduler passes the run by it: give values to WithContext of this package":             {secondly, task, []gocron.JobOption{name, gocron.WithContext(context.Background())}},
		"scheduler: gocron.WithLimitedRuns: each replica would count its own runs: remove the job when the work is done":            {secondly, task, []gocron.JobOption{name, gocron.WithLimitedRuns(1)}},
		"scheduler: gocron.WithIntervalFromCompletion: each replica would count from its own runs: a run is never overlapped by the next as it is": {
			secondly, task, []gocron.JobOption{name, gocron.WithIntervalFromCompletion()}},
		"scheduler: gocron: option 1 panics: runtime error: invalid memory address or nil pointer dereference": {
			secondly, task, []gocron.JobOption{name, gocron.WithEventListeners(nil)}},
		"scheduler: gocron.JobOption: option 1 is nil": {secondly, task, []gocron.JobOption{name, nil}},
		"scheduler: gocron.WithName: the job has no name: by it replicas agree on what they run, so give it one that stays the same": {secondly, task, nil},
		`scheduler: gocron.WithName: there is a job of the name "there" already: the two would exclude each other`:                   {secondly, task, []gocron.JobOption{gocron.WithName("there")}},
		"scheduler: definition: is nil: use gocron.CronJob, for example":                                                             {nil, task, []gocron.JobOption{name}},
		"scheduler: task: is made by gocron.NewTask, which cannot be told of its lease: use scheduler.NewTask":                       {secondly, gocron.NewTask(func() {}), []gocron.JobOption{name}},
		"scheduler: gocron.DurationJob: ticks 9.999999ms apart are too close: they are told apart if they are at least 10ms apart": {
			gocron.DurationJob(scheduler.MinInterval - 1), task, []gocron.JobOption{name}},
		"scheduler: gocron.DurationJob: ticks 87600h0m0.000000001s apart are too far apart: 87600h0m0s is the most": {
			gocron.DurationJob(scheduler.MaxSpan + 1), task, []gocron.JobOption{name}},
		"scheduler: gocron.OneTimeJobStartDateTimes: ticks 4ms apart are too close: they are told apart if they are at least 10ms apart": {
			gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(tomorrow, tomorrow.Add(4*time.Millisecond))), task, []gocron.JobOption{name}},
		// gocron would look for the one after it for ever: to it these are two times.
		"scheduler: gocron.OneTimeJobStartDateTimes: ticks 0s apart are too close: they are told apart if they are at least 10ms apart": {
			gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(tomorrow.UTC(), tomorrow.In(time.FixedZone("", 3600)))), task, []gocron.JobOption{name}},
		"scheduler: gocron.DurationRandomJob: each replica would run it at times of its own: use WithElection, so that the leader alone does": {
			gocron.DurationRandomJob(time.Second, time.Minute), task, []gocron.JobOption{name}},
		"scheduler: gocron.OneTimeJobStartImmediately: each replica would run it when it starts: give a time with gocron.OneTimeJobStartDateTime, the same on all": {
			gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), task, []gocron.JobOption{name}},
		"scheduler: interval: every 2" + counted: {gocron.DailyJob(2, midnight), task, []gocron.JobOption{name}},
		"scheduler: interval: every 3" + counted: {gocron.WeeklyJob(3, gocron.NewWeekdays(time.Monday), midnight), task, []gocron.JobOption{name}},
		"scheduler: interval: every 4" + counted: {gocron.MonthlyJob(4, gocron.NewDaysOfTheMonth(1), midnight), task, []gocron.JobOption{name}},
		"scheduler: gocron.CronJob: @every is counted from the start of each replica: use gocron.DurationJob": {
			gocron.CronJob("@every 1m", false), task, []gocron.JobOption{name}},
		"scheduler: gocron.WithStopAt: a one-time job ends with its last time: leave it out": {
			gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(tomorrow)), task, []gocron.JobOption{name, gocron.WithStopAt(gocron.WithStopDateTime(tomorrow.Add(time.Hour)))}},
		"scheduler: gocron.WithStartImmediately: each replica would run it when it starts: use RunNow on one of them": {
			secondly, task, []gocron.JobOption{name, immediately}},
	} {
		t.Run(text, func(t *testing.T) {
			j, err := s.NewJob(tc.definition, tc.task, tc.opts...)
			require.Nil(t, j)
			requireInvalid(t, err, text)
		})
	}
	for advice, tc := range map[string]struct {
		opt gocron.JobOption
		err error
	}{
		"use gocron.WithStartDateTimePast, which takes such a time": {
			gocron.WithStartAt(gocron.WithStartDateTime(time.Now().Add(-time.Hour))), gocron.ErrWithStartDateTimePast},
		"the job is over, so do not create it any more": {
			gocron.WithStopAt(gocron.WithStopDateTime(time.Now().Add(-time.Hour))), gocron.ErrWithStopDateTimePast},
	} {
		_, err = s.NewJob(secondly, task, name, tc.opt)
		require.ErrorIs(t, err, tc.err)
		require.ErrorContains(t, err, advice)
		require.ErrorAs(t, err, new(*scheduler.OptionError))
	}
	elected := made(t, quorumFor(t), scheduler.WithElection("jobs"))
	_, err = elected.NewJob(gocron.DurationRandomJob(scheduler.MinInterval-1, time.Minute), task, name)
	requireInvalid(t, err, "scheduler: gocron.DurationRandomJob: ticks 9.999999ms apart are too close: they are told apart if they are at least 10ms apart")
	own := func(every, first time.Duration) (gocron.Job, error) {
		from := time.Now().Truncate(time.Second).Add(first)
		return s.NewJob(gocron.CronJob("whatever", false), task, gocron.WithName("own"), gocron.WithCronImplementation(&often{from, every}))
	}
	for _, gap := range []time.Duration{time.Millisecond, scheduler.MinInterval - time.Millisecond} {
		_, err = own(gap, time.Hour)
		requireInvalid(t, err, fmt.Sprintf("scheduler: gocron.WithCronImplementation: ticks %v apart are too close: they are told apart if they are at least 10ms apart", gap))
		_, err = own(gap, time.Hour+time.Second-2*gap)
		require.ErrorContains(t, err, "apart are too close", "at the end of a second")
	}
	for _, gap := range []time.Duration{scheduler.MinInterval, time.Second, 5000 * 24 * time.Hour} {
		for _, first := range []time.Duration{time.Hour, time.Hour + time.Second - 2*scheduler.MinInterval, time.Hour - time.Millisecond} {
			j, err := own(gap, first)
			require.NoError(t, err, gap)
			require.NoError(t, s.RemoveJob(j.ID()))
		}
	}
	for _, d := range []gocron.JobDefinition{
		gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(time.Now().Add(time.Hour))), gocron.DailyJob(1, midnight),
	} {
		_, err = s.NewJob(d, task, name, immediately)
		require.ErrorContains(t, err, "gocron.WithStartImmediately: each replica would run it")
	}
	_, err = s.NewJob(secondly, nil, name)
	require.ErrorIs(t, err, gocron.ErrNewJobTaskNil)
	_, err = s.NewJob(gocron.CronJob("no crontab", false), task, name)
	require.ErrorIs(t, err, gocron.ErrCronJobParse)
	_, err = s.With(nil).NewJob(secondly, task, name)
	requireInvalid(t, err, "scheduler: With: option 0 is nil")
	_, err = s.With(scheduler.WithDelivery(redlock.AtLeastOnce)).NewJob(secondly, task, name)
	require.ErrorContains(t, err, "say with WithCatchUp for how long")
	long := make([]byte, redlock.MaxKeyLength)
	_, err = s.NewJob(secondly, task, gocron.WithName(string(long)))
	require.ErrorContains(t, err, "more than 1020: give it a shorter one")
	require.Len(t, s.Jobs(), 1, "nothing is left of what was refused")
}

// often is a gocron.Cron of one's own.
type often struct {
	from  time.Time
	every time.Duration
}

func (*often) IsValid(string, *time.Location, time.Time) error { return nil }

func (o *often) Next(after time.Time) time.Time {
	if after.Before(o.from) {
		return o.from
	}
	return o.from.Add((after.Sub(o.from)/o.every + 1) * o.every)
}

func TestSchedulerTakesJobs(t *testing.T) {
	s := made(t, quorumFor(t), scheduler.WithElection("jobs"))
	midnight := gocron.NewAtTimes(gocron.NewAtTime(0, 0, 0))
	since := gocron.WithStartAt(gocron.WithStartDateTimePast(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)))
	id := uuid.New()
	for name, tc := range map[string]struct {
		definition gocron.JobDefinition
		opts       []gocron.JobOption
	}{
		"cron":             {secondly, nil},
		"duration":         {gocron.DurationJob(scheduler.MinInterval), nil},
		"duration at once": {gocron.DurationJob(time.Hour), []gocron.JobOption{gocron.WithStartAt(gocron.WithStartImmediately())}},
		"random":           {gocron.DurationRandomJob(time.Second, time.Minute), nil},
		"daily":            {gocron.DailyJob(1, midnight), nil},
		"second daily":     {gocron.DailyJob(2, midnight), []gocron.JobOption{since}},
		"weekly":           {gocron.WeeklyJob(1, gocron.NewWeekdays(time.Monday), midnight), nil},
		"second weekly":    {gocron.WeeklyJob(2, gocron.NewWeekdays(time.Monday), midnight), []gocron.JobOption{since}},
		"monthly":          {gocron.MonthlyJob(1, gocron.NewDaysOfTheMonth(1), midnight), nil},
		"second monthly":   {gocron.MonthlyJob(2, gocron.NewDaysOfTheMonth(1), midnight), []gocron.JobOption{since}},
		"one time":         {gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(time.Now().Add(time.Hour))), nil},
		"longest":          {gocron.DurationJob(scheduler.MaxSpan), nil},
		"options": {secondly, []gocron.JobOption{gocron.WithTags("a", "b"), gocron.WithIdentifier(id), gocron.WithDisabledDistributedJobLocker(true),
			gocron.WithDaylightSavingsTimePolicy(gocron.DaylightSavingsTimeSkip), gocron.WithStopAt(gocron.WithStopDateTime(time.Now().Add(time.Hour)))}},
	} {
		j, err := s.NewJob(tc.definition, scheduler.NewTask(func() {}), append(tc.opts, gocron.WithName(name))...)
		require.NoError(t, err, name)
		require.Equal(t, name, j.Name())
		if name == "options" {
			require.Equal(t, id, j.ID())
			require.Equal(t, []string{"a", "b"}, j.Tags())
		}
	}
	require.Len(t, s.Jobs(), 13)
	s.RemoveByTags("b")
	require.Len(t, s.Jobs(), 12)
}
