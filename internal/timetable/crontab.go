package timetable

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// newCrontab takes a crontab as gocron does, with the same parser. A time that the clock shows
// twice on one day is due once; if the hour field begins with an asterisk, it is due both times.
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

// star is the bit of a field that is an asterisk. If one of the two day fields has it, a day must
// match both; if none has it, a day must match either.
const star = 1 << 63

// field writes a crontab field in canonical words: its values below most.
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
