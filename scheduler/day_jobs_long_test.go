//go:build long

package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"

	scheduler "github.com/tenure-dev/tenure/scheduler"
)

// dayPlan is a schedule in two ways: as users give it to gocron, and as an oracle sees it, which
// looks at each second of the day.
type dayPlan struct {
	words string
	gives func() gocron.JobDefinition
	opts  []gocron.JobOption
	is    func(time.Time) bool // a full second is a due time; nil if other fields say it
	day   []time.Time          // for which it is; nil until somebody asks
	every time.Duration        // an interval that counts from when the definition was first made
	named []time.Time          // the times of a one-time job
	least time.Duration        // of a job whose last run decides: at least this behind its
	most  time.Duration        // beginning, and at most this; zero if it is none
	end   bool                 // behind its end
}

// eachMinutes is due at the minutes n*each + from of an hour.
func eachMinutes(each, from int) dayPlan {
	words := fmt.Sprintf("%d-59/%d * * * *", from, each)
	return dayPlan{words: words, gives: func() gocron.JobDefinition { return gocron.CronJob(words, false) }, is: func(at time.Time) bool {
		return at.Second() == 0 && at.Minute() >= from && (at.Minute()-from)%each == 0
	}}
}

func halfMinutes() dayPlan {
	return dayPlan{
		words: "*/30 * * * * *", gives: func() gocron.JobDefinition { return gocron.CronJob("*/30 * * * * *", true) },
		is: func(at time.Time) bool { return at.Second()%30 == 0 },
	}
}

func anInterval(every time.Duration) dayPlan {
	return dayPlan{words: every.String(), gives: func() gocron.JobDefinition { return gocron.DurationJob(every) }, every: every}
}

// intervalFrom counts from a time before the day.
func intervalFrom(every time.Duration, start time.Time) dayPlan {
	return dayPlan{
		words: every.String() + " from a start", gives: func() gocron.JobDefinition { return gocron.DurationJob(every) },
		opts: []gocron.JobOption{gocron.WithStartAt(gocron.WithStartDateTimePast(start))},
		is:   func(at time.Time) bool { return at.Sub(start)%every == 0 },
	}
}

// daily is due each so many days, counted from a day before, at the minutes that are there.
func daily(days uint, start time.Time, minutes ...int) dayPlan {
	var times []gocron.AtTime
	for _, m := range minutes {
		times = append(times, gocron.NewAtTime(uint(m/60), uint(m%60), 0))
	}
	return dayPlan{
		words: fmt.Sprint("each ", days, " days"),
		gives: func() gocron.JobDefinition {
			return gocron.DailyJob(days, gocron.NewAtTimes(times[0], times[1:]...))
		},
		opts: []gocron.JobOption{gocron.WithStartAt(gocron.WithStartDateTimePast(start))},
		is: func(at time.Time) bool {
			since := int(at.Sub(start) / (24 * time.Hour))
			return at.Second() == 0 && since%int(days) == 0 && slices.Contains(minutes, at.Hour()*60+at.Minute())
		},
	}
}

func weekly(on time.Weekday, minutes ...int) dayPlan {
	var times []gocron.AtTime
	for _, m := range minutes {
		times = append(times, gocron.NewAtTime(uint(m/60), uint(m%60), 0))
	}
	return dayPlan{
		words: fmt.Sprint("each ", on),
		gives: func() gocron.JobDefinition {
			return gocron.WeeklyJob(1, gocron.NewWeekdays(on), gocron.NewAtTimes(times[0], times[1:]...))
		},
		is: func(at time.Time) bool {
			return at.Second() == 0 && at.Weekday() == on && slices.Contains(minutes, at.Hour()*60+at.Minute())
		},
	}
}

func oneTime(at ...time.Time) dayPlan {
	return dayPlan{
		words: "one-time", named: at,
		gives: func() gocron.JobDefinition { return gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(at...)) },
	}
}

func atRandom(least, most time.Duration) dayPlan {
	return dayPlan{words: "random", gives: func() gocron.JobDefinition { return gocron.DurationRandomJob(least, most) }, least: least, most: most}
}

func fromEnd(every time.Duration) dayPlan {
	return dayPlan{
		words: "from its end", gives: func() gocron.JobDefinition { return gocron.DurationJob(every) },
		opts: []gocron.JobOption{gocron.WithIntervalFromCompletion()}, least: every, most: every, end: true,
	}
}

// times are the due times after one time and not after another, of a definition that was made then.
func (p *dayPlan) times(since, after, until time.Time) (times []time.Time) {
	switch {
	case p.every > 0:
		for at := since.Add(p.every); !at.After(until); at = at.Add(p.every) {
			if at.After(after) {
				times = append(times, at)
			}
		}
	case p.is != nil:
		if p.day == nil {
			p.day = []time.Time{}
			for at := day(1, 0, 0, 0); at.Before(day(2, 1, 0, 0)); at = at.Add(time.Second) {
				if p.is(at) {
					p.day = append(p.day, at)
				}
			}
		}
		from, _ := slices.BinarySearchFunc(p.day, after.Add(1), time.Time.Compare)
		to, _ := slices.BinarySearchFunc(p.day, until.Add(1), time.Time.Compare)
		times = slices.Clip(p.day[from:max(from, to)])
	}
	for _, at := range p.named {
		if at.After(after) && !at.After(until) {
			times = append(times, at)
		}
	}
	return times
}

// dayJob is a job and its policy. Versions of the service have its plans in turn.
type dayJob struct {
	name    string
	elected bool
	plans   []dayPlan
	catchUp scheduler.CatchUp
	window  time.Duration
	again   bool // at least once
	queue   bool
	limit   int
	takes   time.Duration
	panics  bool // now and then
}

func (j *dayJob) plan(version int) int { return version % len(j.plans) }

// age is how late a tick may be begun.
func (j *dayJob) age() time.Duration {
	if j.catchUp == scheduler.CatchUpNone {
		return scheduler.Grace
	}
	return j.window
}

func (j *dayJob) String() string {
	text := fmt.Sprintf("%s (%s, %v %v", j.name, j.plans[0].words, j.catchUp, j.window)
	for _, word := range []struct {
		is   bool
		text string
	}{{j.again, "at least once"}, {j.queue, "queue"}, {j.elected, "elected"}, {j.limit > 0, "limited"}} {
		if word.is {
			text += ", " + word.text
		}
	}
	return text + fmt.Sprintf(", takes %v)", j.takes)
}

func (j *dayJob) options(version int) []gocron.JobOption {
	opts := append([]gocron.JobOption{gocron.WithName(j.name), within(j.window, j.catchUp)}, j.plans[j.plan(version)].opts...)
	if j.again {
		opts = append(opts, scheduler.WithDelivery(scheduler.AtLeastOnce))
	}
	if j.queue {
		opts = append(opts, scheduler.WithOverlap(scheduler.OverlapQueue))
	}
	if j.limit > 0 {
		opts = append(opts, gocron.WithLimitedRuns(uint(j.limit)))
	}
	return opts
}

// dayJobs are fifty jobs: each kind of schedule with each policy that a dice gives it.
func dayJobs(dice *rand.Rand, on []daySpan) (jobs []*dayJob) {
	minuteIn := func() int { // one in which the service is on
		s := on[dice.IntN(len(on))]
		return int(s.from.Sub(day(1, 0, 0, 0))/time.Minute) + 1 + dice.IntN(int(s.to.Sub(s.from)/time.Minute)-2)
	}
	start := day(1, 0, 0, 0).AddDate(0, 0, -4)
	kinds := []func() dayPlan{
		func() dayPlan { return eachMinutes(1, 0) },
		func() dayPlan { return eachMinutes(2+dice.IntN(4), dice.IntN(2)) },
		func() dayPlan { return eachMinutes(10, dice.IntN(10)) },
		func() dayPlan { return halfMinutes() },
		func() dayPlan { return anInterval(time.Duration(45+dice.IntN(200)) * time.Second) },
		func() dayPlan { return intervalFrom(time.Duration(1+dice.IntN(9))*time.Minute, start) },
		func() dayPlan {
			return daily(1, start, minuteIn(), minuteIn(), minuteIn(), dice.IntN(24*60), dice.IntN(24*60))
		},
		func() dayPlan { return daily(uint(2+dice.IntN(2)), start, minuteIn(), minuteIn(), dice.IntN(24*60)) },
		func() dayPlan { return weekly(time.Saturday, minuteIn(), minuteIn(), dice.IntN(24*60)) },
		func() dayPlan { return weekly(time.Sunday, minuteIn()) },
		func() dayPlan {
			times := []time.Time{day(1, 0, dice.IntN(24*60), 0)}
			for range 3 {
				times = append(times, day(1, 0, minuteIn(), 7+dice.IntN(50)))
			}
			slices.SortFunc(times, time.Time.Compare)
			return oneTime(slices.CompactFunc(times, time.Time.Equal)...)
		},
		func() dayPlan { return atRandom(time.Minute, 4*time.Minute) },
		func() dayPlan { return fromEnd(2 * time.Minute) },
	}
	for i := range 50 {
		j := &dayJob{name: fmt.Sprint("job ", i), elected: i%5 == 4, plans: []dayPlan{kinds[i%len(kinds)]()}}
		j.catchUp = scheduler.CatchUp(dice.IntN(3))
		if j.catchUp != scheduler.CatchUpNone {
			j.window = []time.Duration{30 * time.Second, 3 * time.Minute, 20 * time.Minute}[dice.IntN(3)]
			j.again = dice.IntN(2) == 0
			if j.plans[0].is != nil && i%len(kinds) >= 6 {
				j.window = []time.Duration{time.Hour, 6 * time.Hour}[dice.IntN(2)]
			}
		}
		j.queue = dice.IntN(2) == 0
		j.takes = []time.Duration{0, time.Second, 8 * time.Second, 40 * time.Second, 100 * time.Second}[dice.IntN(5)]
		chain := j.plans[0].most > 0
		switch {
		case !chain && i%4 == 1: // other versions have another schedule
			j.plans = append(j.plans, kinds[dice.IntN(6)]())
		case i%10 == 3:
			j.limit = 5 + dice.IntN(20)
		}
		j.panics = i%7 == 0
		jobs = append(jobs, j)
	}
	return jobs
}
