package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

// schedulePhrase returns a schedule in words, or nothing for an unusual one. The schedule itself is
// always shown, and a wrong phrase would be worse than none.
func schedulePhrase(schedule string) string {
	if every := periodOf(schedule); every > 0 {
		return "every " + periodPhrase(every)
	}
	fields := cronFields(schedule)
	if fields == nil {
		return ""
	}
	minute, ok := unit(fields[1], 59)
	hour, ok2 := unit(fields[2], 23)
	switch {
	case fields[0] != "0" || !ok:
	case stars(fields[2:]):
		return fmt.Sprintf("every hour at minute %d", minute)
	case ok2 && stars(fields[3:]):
		return fmt.Sprintf("every day at %02d:%02d", hour, minute)
	}
	return ""
}

// cronFields returns the six fields of a crontab; nil if the schedule is no crontab.
func cronFields(schedule string) []string {
	if _, behind, ok := strings.Cut(schedule, "TZ="); ok { // TZ= or CRON_TZ=
		_, schedule, _ = strings.Cut(behind, " ")
	}
	fields := strings.Fields(schedule)
	if len(fields) == 5 {
		fields = append([]string{"0"}, fields...)
	}
	if len(fields) != 6 {
		return nil
	}
	return fields
}

func stars(fields []string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { return f != "*" })
}

// periodOf returns the time between two ticks of a schedule if it is constant, and else zero.
func periodOf(schedule string) time.Duration {
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(schedule, "@"), "every "); ok {
		if d, err := time.ParseDuration(strings.TrimSuffix(rest, " from completion")); err == nil {
			return max(d, 0)
		}
		return 0
	}
	fields := cronFields(schedule)
	if fields == nil {
		return 0
	}
	lengths := []time.Duration{time.Second, time.Minute, time.Hour}
	for i, most := range []int{60, 60, 24} { // steps of seconds, minutes or hours
		if n, ok := step(fields[i], most); ok && stars(fields[i+1:]) {
			return time.Duration(n) * lengths[i]
		}
		if fields[i] != "0" {
			break
		}
	}
	return 0
}

// periodPhrase returns a period for use after "every".
func periodPhrase(d time.Duration) string {
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if d >= unit && d%unit == 0 {
			return strings.TrimPrefix(view.Counted(int(d/unit), []string{"day", "hour", "minute", "second"}[i]), "1 ")
		}
	}
	return d.String()
}

// listed joins words as a sentence does.
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// step reads a field such as * or */5. It is not ok for a step such as */40 that does not divide
// most, because the distance between the field's last value and the next first one is shorter.
func step(field string, most int) (n int, ok bool) {
	if field == "*" {
		return 1, true
	}
	text, ok := strings.CutPrefix(field, "*/")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= 1 && n < most && most%n == 0
}

// unit reads a field that is a number.
func unit(field string, most int) (int, bool) {
	n, err := strconv.Atoi(field)
	return n, err == nil && n >= 0 && n <= most
}
