package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return v
}

// Which number a host computes, by its clock and its zone.
func TestTickOf(t *testing.T) {
	for _, c := range []struct{ tick, now, want string }{
		{everyMinute, "2026-03-01T12:00:59.999Z", "2026-03-01T12:00:00Z"},
		{"0 * * * *", "2026-03-01T12:59:59Z", "2026-03-01T12:00:00Z"},
		{"*/5 * * * *", "2026-03-01T12:03:00Z", "2026-03-01T12:00:00Z"},
		{"30 2 1 1 *", "2026-03-01T12:03:00Z", "2026-01-01T02:30:00Z"},
		{"30 2 29 2 *", "2027-03-01T12:03:00Z", "2024-02-29T02:30:00Z"},
		{"@daily", "2026-03-01T12:03:00Z", "2026-03-01T00:00:00Z"},
		// The days on which clocks are changed, where days of UTC would have two runs.
		{"TZ=Europe/Berlin 30 1 * * *", "2026-03-29T00:30:00Z", "2026-03-29T00:30:00Z"},
		// What the clock shows twice is due the first time, as with a Scheduler.
		{"TZ=Europe/Berlin 30 2 * * *", "2026-10-25T01:31:00Z", "2026-10-25T00:30:00Z"},
		{"2026-01-02T03:04:05.5Z", "2026-03-01T12:03:00Z", "2026-01-02T03:04:05.5Z"},
	} {
		got, err := tickOf(c.tick, at(t, c.now))
		require.NoError(t, err, "%+v", c)
		require.Equal(t, at(t, c.want).UnixMilli(), got.at.UnixMilli(), "%+v gives %v", c, got.at)
		require.GreaterOrEqual(t, got.keep, minKeep)
	}
	got, err := tickOf("0 0 1 * *", at(t, "2026-03-01T12:03:00Z"))
	require.NoError(t, err)
	require.Equal(t, 62*24*time.Hour, got.keep, "twice as long as to the next one")
	for _, wrong := range []string{"", "often", "* * * *", "* * * * * *", "61 * * * *", "@every 1h", "TZ=0", "CRON_TZ=UTC", "TZ=Nowhere 0 0 * * *", "0 0 30 2 *", "1960-01-01T00:00:00Z"} {
		_, err := tickOf(wrong, at(t, "2026-03-01T12:03:00Z"))
		require.Error(t, err, wrong)
	}
}

func TestTickOfPeriod(t *testing.T) {
	for _, c := range []struct {
		period    time.Duration
		now, want string
	}{
		{time.Hour, "2026-03-01T12:59:59.999Z", "2026-03-01T12:00:00Z"},
		{24 * time.Hour, "2026-03-01T23:59:59+02:00", "2026-03-01T00:00:00Z"},
		{7 * time.Second, "1970-01-01T00:00:13Z", "1970-01-01T00:00:07Z"},
	} {
		got, err := tickOfPeriod(c.period, at(t, c.now))
		require.NoError(t, err)
		require.Equal(t, at(t, c.want).UnixMilli(), got.at.UnixMilli(), "%+v", c)
	}
	for _, wrong := range []time.Duration{-1, 0, time.Millisecond, time.Second + 1, 400 * 24 * time.Hour} {
		_, err := tickOfPeriod(wrong, time.Now())
		require.Error(t, err, wrong)
	}
	_, err := tickOfPeriod(time.Hour, time.Unix(0, 0))
	require.Error(t, err, "a clock that was never set")
}
