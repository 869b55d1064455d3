package web

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// cronFields are the six fields of a crontab; nil for what is none.
func cronFields(schedule string) []string {
	if _, behind, ok := strings.Cut(schedule, "TZ="); ok { // TZ and CRON_TZ
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

// periodOf is the time between two ticks of a schedule, if that is always the same; else zero.
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
	for i, most := range []int{60, 60, 24} { // every so many seconds, minutes or hours
		if n, ok := step(fields[i], most); ok && stars(fields[i+1:]) {
			return time.Duration(n) * lengths[i]
		}
		if fields[i] != "0" {
			break
		}
	}
	return 0
}

// listed joins words as a sentence does.
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// step reads a field such as * or */5. One that begins anew before a whole step has passed, such as
// */40, is none: its ticks are not so far from each other.
func step(field string, most int) (n int, ok bool) {
	if field == "*" {
		return 1, true
	}
	text, ok := strings.CutPrefix(field, "*/")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= 1 && n < most && most%n == 0
}
