package timetable_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/timetable"
)

// A schedule is shown as package web understands it, see schedulePhrase.
func TestScheduleForPeople(t *testing.T) {
	at := []time.Duration{3 * time.Hour, 15*time.Hour + 30*time.Minute}
	for want, spec := range map[string]timetable.Spec{
		"0 3 * * *":                         {Kind: timetable.Crontab, Text: "0 3 * * *"},
		"mine":                              {Kind: timetable.Own, Text: "mine"},
		"every 1m0s":                        {Kind: timetable.Interval, Every: time.Minute},
		"every 1m0s to 2m0s":                {Kind: timetable.Random, Every: time.Minute, Most: 2 * time.Minute},
		"every 1 days at [3h0m0s 15h30m0s]": {Kind: timetable.Daily, Units: 1, Times: at},
		"every 2 weeks on [Monday Friday] at [3h0m0s 15h30m0s]": {Kind: timetable.Weekly, Units: 2, Weekdays: []time.Weekday{1, 5}, Times: at},
		"every 1 months on [1 15] [-1] at [3h0m0s 15h30m0s]":    {Kind: timetable.Monthly, Units: 1, Days: []int{1, 15, -1}, Times: at},
		"at [2026-03-01T12:00:00Z]":                             {Kind: timetable.Once, At: []time.Time{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}},
	} {
		require.Equal(t, want, spec.String())
	}
}
