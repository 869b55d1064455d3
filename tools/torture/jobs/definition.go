package jobs

import (
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// span is for how long jobs with a list of times have times before and after the start of the soak.
const (
	spanBefore = 2 * time.Minute
	spanAfter  = 10 * time.Minute // and the duration
)

// Definition is the job for gocron. Lists of times begin shortly before start and reach beyond the
// end.
func (j *Job) Definition(start time.Time, duration time.Duration) (gocron.JobDefinition, error) {
	switch j.Kind {
	case Cron:
		return gocron.CronJob(j.crontab(), true), nil
	case Daily:
		return gocron.DailyJob(1, j.atTimes(start, duration)), nil
	case Weekly:
		days := gocron.NewWeekdays(time.Sunday, time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday, time.Saturday)
		return gocron.WeeklyJob(1, days, j.atTimes(start, duration)), nil
	case Duration:
		return gocron.DurationJob(j.Every), nil
	case Random:
		return gocron.DurationRandomJob(j.Every, 2*j.Every), nil
	case Manual:
		return gocron.CronJob("0 0 1 1 *", false), nil
	default:
		return nil, fmt.Errorf("jobs: %s has no schedule of its own", j.Name)
	}
}

func (j *Job) crontab() string {
	switch {
	case j.Every == time.Second:
		return "* * * * * *"
	case j.Every%time.Minute == 0:
		return fmt.Sprintf("0 */%d * * * *", int(j.Every.Minutes()))
	}
	return fmt.Sprintf("*/%d * * * * *", int(j.Every.Seconds()))
}

// atTimes lists times of the day. Across the end of a day they go on at its beginning.
func (j *Job) atTimes(start time.Time, duration time.Duration) gocron.AtTimes {
	ticks := j.Ticks(start.Add(-spanBefore).UnixMilli(), start.Add(duration+spanAfter).UnixMilli())
	const most = 24*60*60/4 - 1 // no time twice
	var times []gocron.AtTime
	for _, tick := range ticks[:min(len(ticks), most)] {
		at := time.UnixMilli(tick).UTC()
		times = append(times, gocron.NewAtTime(uint(at.Hour()), uint(at.Minute()), uint(at.Second())))
	}
	return gocron.NewAtTimes(times[0], times[1:]...)
}
