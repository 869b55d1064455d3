//go:build long

package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Replicas that start at whatever minute of a day on which clocks are changed are due at the same
// times from then on, and the missed ticks are the same. gocron decides by what it scheduled
// before: a replica that started at 02:45 CEST was due at 02:30 CET.
func TestReplicasAgreeWhenTheClocksChange(t *testing.T) {
	days := map[string][]time.Time{
		"Europe/Berlin":       {date(2026, 3, 29), date(2026, 10, 25)},
		"Europe/London":       {date(2026, 3, 29), date(2026, 10, 25)},
		"America/New_York":    {date(2026, 3, 8), date(2026, 11, 1)},
		"America/Havana":      {date(2026, 3, 8), date(2026, 11, 1)},
		"Australia/Lord_Howe": {date(2026, 4, 5), date(2026, 10, 4)},
		"Africa/Casablanca":   {date(2026, 2, 15), date(2026, 3, 22)},
		"Pacific/Apia":        {date(2011, 12, 30)}, // a day that was left out
	}
	zones := make([]string, 0, len(days))
	for name := range days {
		zones = append(zones, name)
	}
	slices.Sort(zones)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(zones).Draw(t, "zone")
		location := zone(t, name)
		day := rapid.SampledFrom(days[name]).Draw(t, "day")
		hour, minute := uint(rapid.IntRange(0, 3).Draw(t, "hour")), uint(rapid.SampledFrom([]int{0, 15, 30, 45, 59}).Draw(t, "minute"))
		at := atTimes([2]uint{hour, minute}, [2]uint{hour + 1, 0})
		var definition gocron.JobDefinition
		switch rapid.SampledFrom([]string{"cron", "seconds", "hourly", "step", "zone", "daily", "weekly", "monthly"}).Draw(t, "kind") {
		case "cron":
			definition = gocron.CronJob(fmt.Sprintf("%d %d * * *", minute, hour), false)
		case "seconds":
			definition = gocron.CronJob(fmt.Sprintf("*/20 %d %d * * *", minute, hour), true)
		case "hourly":
			definition = gocron.CronJob(fmt.Sprintf("%d * * * *", minute), false)
		case "step":
			definition = gocron.CronJob("*/15 */2 * * *", false)
		case "zone":
			definition = gocron.CronJob(fmt.Sprintf("CRON_TZ=%s %d %d * * *", name, minute, hour), false)
			location = zone(t, rapid.SampledFrom(zones).Draw(t, "location"))
		case "daily":
			definition = gocron.DailyJob(1, at)
		case "weekly":
			definition = gocron.WeeklyJob(1, gocron.NewWeekdays(time.Sunday, time.Monday), at)
		case "monthly":
			definition = gocron.MonthlyJob(1, gocron.NewDaysOfTheMonth(-1, 1, day.Day()), at)
		}
		opts := onDaylightSaving(rapid.SampledFrom([]gocron.DaylightSavingsTimePolicy{
			gocron.DaylightSavingsTimeDefault, gocron.DaylightSavingsTimeSkip, gocron.DaylightSavingsTimeRunAfterTransition,
		}).Draw(t, "policy"))

		begin, end := day.Add(-36*time.Hour), day.Add(72*time.Hour)
		all := scheduledFrom(t, begin, end, location, definition, opts...)
		ticks := newTestTicker(t, definition, location, opts...)
		missed := ticks.between(begin, end)
		requireTimes(t, all, missed, "missed")
		require.True(t, slices.IsSortedFunc(all, time.Time.Compare))
		for start, left := begin, all; len(left) > 0; start = start.Add(time.Minute) {
			for len(left) > 0 && !left[0].After(start) {
				left = left[1:]
			}
			if len(left) == 0 {
				break
			}
			require.True(t, left[0].Equal(ticks.table.next(start)), "started at %v", start)
		}

		start := begin.Add(time.Duration(rapid.IntRange(0, 4*24*60).Draw(t, "start")) * time.Minute)
		start = start.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 30_000, 59_999}).Draw(t, "milliseconds")) * time.Millisecond)
		from, _ := slices.BinarySearchFunc(all, start.Add(1), time.Time.Compare)
		requireTimes(t, all[from:], scheduledFrom(t, start, end, location, definition, opts...), "started at %v", start)
	})
}
