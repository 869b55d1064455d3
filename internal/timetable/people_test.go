package timetable_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/timetable"
)

// The words of a schedule begin as people read them.
func TestWordsForPeople(t *testing.T) {
	at := []time.Duration{15*time.Hour + 30*time.Minute, 3 * time.Hour}
	for want, spec := range map[string]timetable.Spec{
		"own cron mine":                     {Kind: timetable.Own, Text: "mine"},
		"every 1m0s":                        {Kind: timetable.Interval, Every: time.Minute},
		"every 1m0s from completion":        {Kind: timetable.Interval, Every: time.Minute, FromEnd: true, AtOnce: true},
		"every 1m0s to 2m0s":                {Kind: timetable.Random, Every: time.Minute, Most: 2 * time.Minute},
		"every 1 days at 03:00:00 15:30:00": {Kind: timetable.Daily, Units: 1, Times: at},
		"every 2 weeks on [Monday Friday] at 03:00:00 15:30:00": {Kind: timetable.Weekly, Units: 2, Weekdays: []time.Weekday{5, 1}, Times: at},
		"every 1 months on [-1 1 15] at 03:00:00 15:30:00":      {Kind: timetable.Monthly, Units: 1, Days: []int{1, 15, -1}, Times: at},
		"at 2026-03-01T12:00:00Z":                               {Kind: timetable.Once, At: []time.Time{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}},
	} {
		d, err := timetable.New(spec)
		require.NoError(t, err)
		words, _, _ := strings.Cut(d.Words, ", ")
		require.Equal(t, want, words)
	}
}
