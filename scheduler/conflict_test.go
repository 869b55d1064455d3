package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// labelOf is the label of a job, without the program.
func labelOf(t *testing.T, definition gocron.JobDefinition, location *time.Location, opts ...gocron.JobOption) string {
	t.Helper()
	p, err := probeAt(time.Time{}, definition, NewTask(func() {}), append(opts, gocron.WithName("job")))
	require.NoError(t, err)
	label := newLabel(kindOf(p.schedule), newTestTicker(t, definition, location, opts...).table)
	require.LessOrEqual(t, len(label), redlock.MaxLabelLength)
	require.True(t, utf8.ValidString(label))
	require.True(t, strings.HasPrefix(label, program()+"; "), label)
	return strings.TrimPrefix(label, program()+"; ")
}

// What decides the ticks of a job is in its label, and what does not is not.
func TestLabels(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	times := atTimes([2]uint{2, 30}, [2]uint{14, 0})
	for want, got := range map[string]string{
		"30 2 * * *; Europe/Berlin":                 labelOf(t, gocron.CronJob("30 2 * * *", false), berlin),
		"30 2 * * *; Europe/Berlin; later":          labelOf(t, gocron.CronJob("30 2 * * *", false), berlin, onDaylightSaving(gocron.DaylightSavingsTimeRunAfterTransition)...),
		"CRON_TZ=Asia/Tokyo 30 2 * * *; Asia/Tokyo": labelOf(t, gocron.CronJob("CRON_TZ=Asia/Tokyo 30 2 * * *", false), berlin),
		"every 1m30s": labelOf(t, gocron.DurationJob(90*time.Second), berlin),
		"every 1 days at [2h30m0s 14h0m0s]; UTC; later":              labelOf(t, gocron.DailyJob(1, times), time.UTC),
		"every 1 weeks on [Monday] at [2h30m0s 14h0m0s]; UTC; later": labelOf(t, gocron.WeeklyJob(1, gocron.NewWeekdays(time.Monday), times), time.UTC),
		"every 1 months on [1] [-1] at [2h30m0s 14h0m0s]; UTC; later": labelOf(t,
			gocron.MonthlyJob(1, gocron.NewDaysOfTheMonth(1, -1), times), time.UTC),
		"at [2040-01-01T00:00:00Z]": labelOf(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(time.Date(2040, 1, 1, 1, 0, 0, 0, zone(t, "Africa/Lagos")))), berlin),
	} {
		require.Equal(t, want, got)
	}
	require.Regexp(t, `^Local [+-]\d\d:\d\d[+-]\d\d:\d\d$`, zoneName(time.Local))
	var many []time.Time
	for i := range 50 {
		many = append(many, time.Date(2040, 1, 1, 0, i, 0, 0, time.UTC))
	}
	long := labelOf(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(many...)), berlin)
	longer := labelOf(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(many[:49]...)), berlin)
	require.NotEqual(t, long, longer, "also where they are too long")
}

// What a job remembers of others is bounded.
func TestLabelsAreBounded(t *testing.T) {
	l := &labels{own: "own"}
	for i := range 3 * maxOthers {
		for j := range 3 {
			l.read("job", time.Unix(0, 0).Add(time.Duration(j)*time.Hour), fmt.Sprint("other", i), "")
		}
	}
	require.Len(t, l.others, maxOthers)
	require.Len(t, l.conflicts(), maxOthers)
}
