package timetable

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// newCrontab takes what gocron takes, as the parser that gocron uses reads it. A time whose hours
// are fixed is due once on a day on which the clock shows it twice; if the field of the hours
// begins with an asterisk, every time that the clock shows is due.
func (t *timetable) newCrontab() error {
	const option = "gocron.CronJob"
	text := t.spec.Text
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		var name string
		var found bool
		if name, text, found = strings.Cut(text, " "); !found {
			return &OptionError{Option: option, Reason: "it has a zone and no schedule"}
		}
		_, name, _ = strings.Cut(name, "=")
		zone, err := time.LoadLocation(name)
		if err != nil {
			return &OptionError{Option: option, Reason: err.Error(), Err: err}
		}
		t.spec.Zone = zone
	}
	text = strings.TrimSpace(text)
	fields := cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor
	if t.spec.Seconds {
		fields |= cron.SecondOptional
	}
	parsed, err := cron.NewParser(fields).Parse(text)
	if err != nil {
		return &OptionError{Option: option, Reason: err.Error(), Err: err}
	}
	schedule, ok := parsed.(*cron.SpecSchedule)
	switch {
	case !ok:
		return &OptionError{Option: option, Reason: "@every is counted from the start of each replica: use gocron.DurationJob"}
	case strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ="):
		return &OptionError{Option: option, Reason: "two zones are given"}
	}
	schedule.Location = time.UTC
	words := strings.Fields(text)
	hours := words[max(0, len(words)-4)] // or @daily and the like
	w := wallTimes{
		schedule: schedule.Next, zone: t.spec.Zone,
		later: t.spec.Daylight == DaylightLater,
		twice: strings.HasPrefix(hours, "*") || strings.HasPrefix(hours, "?") || hours == "@hourly",
	}
	t.words = fmt.Sprintf("cron %s %s %s %s %s %s, %s", field(schedule.Second, 60), field(schedule.Minute, 60), field(schedule.Hour, 24),
		field(schedule.Dom, 32), field(schedule.Month, 13), field(schedule.Dow, 7), w.words())
	t.base = func(time.Time) times { return w.next }
	switch every := func(bits uint64) bool { return bits&star != 0 }; {
	case !every(schedule.Month):
		t.rest = year
	case !every(schedule.Dom):
		t.rest = 62 * daylong
	case !every(schedule.Dow):
		t.rest = 7 * daylong
	default:
		t.rest = daylong
	}
	return nil
}

// star is the bit of a field that is an asterisk. Of the two fields of days, one with it restricts
// the other, and two without it add to each other.
const star = 1 << 63

// field is a field of a crontab in words, in whatever way it was written: its values below most.
func field(bits uint64, most int) string {
	if bits&star != 0 {
		return "*"
	}
	var texts []string
	for first := 0; first < most; first++ {
		if bits&(1<<first) == 0 {
			continue
		}
		last := first
		for last+1 < most && bits&(1<<(last+1)) != 0 {
			last++
		}
		text := strconv.Itoa(first)
		if last > first {
			text += "-" + strconv.Itoa(last)
		}
		texts = append(texts, text)
		first = last
	}
	return strings.Join(texts, ",")
}
