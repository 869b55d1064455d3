package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// schedulePhrase is a schedule in words, empty for one that this does not understand: it is shown
// as it is written in any case.
func schedulePhrase(schedule string) string {
	if len(schedule) > 200 {
		return ""
	}
	if rest, ok := strings.CutPrefix(schedule, "every "); ok {
		return intervalPhrase(rest)
	}
	if rest, ok := strings.CutPrefix(schedule, "@every "); ok {
		return intervalPhrase(rest)
	}
	for _, zone := range []string{"TZ=", "CRON_TZ="} {
		if strings.HasPrefix(schedule, zone) {
			_, schedule, _ = strings.Cut(schedule, " ")
		}
	}
	switch strings.TrimSpace(schedule) {
	case "@yearly", "@annually":
		schedule = "0 0 1 1 *"
	case "@monthly":
		schedule = "0 0 1 * *"
	case "@weekly":
		schedule = "0 0 * * 0"
	case "@daily", "@midnight":
		schedule = "0 0 * * *"
	case "@hourly":
		schedule = "0 * * * *"
	}
	fields := strings.Fields(schedule)
	if len(fields) == 5 {
		fields = append([]string{"0"}, fields...)
	}
	if len(fields) != 6 {
		return ""
	}
	return crontabPhrase(fields)
}

// intervalPhrase is what package scheduler writes behind "every": a duration, two of them, or a
// number of periods, with days in brackets and times.
func intervalPhrase(text string) string {
	text = strings.TrimSuffix(text, " from completion")
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return "every " + periodPhrase(d)
	}
	if from, to, ok := strings.Cut(text, " to "); ok {
		least, err1 := time.ParseDuration(from)
		most, err2 := time.ParseDuration(to)
		if err1 != nil || err2 != nil {
			return ""
		}
		return "every " + periodPhrase(least) + " to " + periodPhrase(most) + ", by chance"
	}
	count, rest, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(count)
	unit, behind, ok := strings.Cut(rest, " ")
	if err != nil || n < 1 || !ok || unit != "days" && unit != "weeks" && unit != "months" {
		return ""
	}
	days, hours, _ := strings.Cut(behind, "at ")
	var times []string
	for _, h := range strings.Fields(hours) {
		if _, err := time.Parse(time.TimeOnly, h); err != nil {
			return ""
		}
		times = append(times, strings.TrimSuffix(h, ":00"))
	}
	phrase := "every " + strings.TrimSuffix(unit, "s")
	if n > 1 {
		phrase = fmt.Sprintf("every %d %s", n, unit)
	}
	days, _, _ = strings.Cut(strings.TrimPrefix(days, "on ["), "]")
	switch list := strings.Fields(days); {
	case len(times) == 0:
		return ""
	case unit == "days":
	case len(list) == 0 || strings.Contains(days, "-"): // days counted from the end
		return ""
	case unit == "weeks":
		phrase += " on " + listed(list)
	default:
		phrase += " on day " + listed(list)
	}
	return phrase + " at " + listed(times)
}

// periodPhrase is a period as it is said behind "every".
func periodPhrase(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch {
		case d == u.unit:
			return u.name
		case d > u.unit && d%u.unit == 0:
			return fmt.Sprintf("%d %ss", d/u.unit, u.name)
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

// crontabPhrase is a line of second, minute, hour, day, month and weekday in words.
func crontabPhrase(fields []string) string {
	when := clockPhrase(fields[0], fields[1], fields[2])
	days, ok := dayPhrase(fields[3], fields[4], fields[5])
	if when == "" || !ok {
		return ""
	}
	if days == "" && strings.HasPrefix(when, "at ") {
		days = "every day"
	}
	if strings.HasPrefix(when, "at ") {
		return strings.TrimSpace(days + " " + when)
	}
	return strings.TrimSpace(when + " " + days)
}

// clockPhrase says the times of a day.
func clockPhrase(second, minute, hour string) string {
	if second != "0" {
		n, ok := step(second, 60)
		switch {
		case minute != "*" || hour != "*":
			return ""
		case second == "*":
			return "every second"
		case ok:
			return "every " + periodPhrase(time.Duration(n)*time.Second)
		}
		return ""
	}
	minutes, fixed := numbers(minute, 0, 59, nil)
	every, stepped := step(minute, 60)
	switch {
	case minute == "*":
		every, stepped = 1, true
	case !fixed && !stepped:
		return ""
	}
	if stepped {
		phrase := "every " + periodPhrase(time.Duration(every)*time.Minute)
		if hour == "*" {
			return phrase
		}
		from, to, isRange := bounds(hour, 0, 23, nil)
		if !isRange {
			return ""
		}
		return fmt.Sprintf("%s from %02d:00 to %02d:59", phrase, from, to)
	}
	if hour == "*" {
		if len(minutes) == 1 && minutes[0] == 0 {
			return "every hour"
		}
		return "every hour at minute " + listed(texts(minutes, "%d"))
	}
	if n, ok := step(hour, 24); ok && len(minutes) == 1 {
		return fmt.Sprintf("every %d hours at minute %d", n, minutes[0])
	}
	hours, ok := numbers(hour, 0, 23, nil)
	if !ok || len(hours)*len(minutes) > 6 {
		return ""
	}
	var times []string
	for _, h := range hours {
		for _, m := range minutes {
			times = append(times, fmt.Sprintf("%02d:%02d", h, m))
		}
	}
	return "at " + listed(times)
}

var (
	monthNames   = strings.Fields("January February March April May June July August September October November December")
	weekdayNames = strings.Fields("Sunday Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
)

// dayPhrase says the days of a year; empty for all.
func dayPhrase(day, month, weekday string) (phrase string, ok bool) {
	isAny := func(field string) bool { return field == "*" || field == "?" }
	switch {
	case isAny(day) && isAny(weekday):
	case !isAny(day) && !isAny(weekday):
		return "", false // either: nobody gets this right in a few words
	case !isAny(day):
		days, ok := numbers(day, 1, 31, nil)
		if !ok {
			return "", false
		}
		phrase = "on day " + listed(texts(days, "%d"))
		if isAny(month) {
			phrase += " of the month"
		}
	default:
		if from, to, ok := bounds(weekday, 0, 7, weekdayNames); ok && to > from {
			phrase = "on " + weekdayNames[from] + " to " + weekdayNames[to]
		} else if days, ok := numbers(weekday, 0, 7, weekdayNames); ok {
			phrase = "on " + listed(named(days, weekdayNames))
		} else {
			return "", false
		}
	}
	if isAny(month) {
		return phrase, true
	}
	months, ok := numbers(month, 1, 12, append([]string{""}, monthNames...))
	if !ok {
		return "", false
	}
	return strings.TrimSpace(phrase + " in " + listed(named(months, append([]string{""}, monthNames...)))), true
}

// step reads a field such as */5. One that begins anew before a whole step has passed, such as
// */40, is none: its ticks are not so far from each other.
func step(field string, most int) (n int, ok bool) {
	text, ok := strings.CutPrefix(field, "*/")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= 2 && n < most && most%n == 0
}

// value reads a number, or the beginning of a name.
func value(text string, least, most int, names []string) (int, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n, n >= least && n <= most
	}
	for i, name := range names {
		if len(text) == 3 && len(name) >= 3 && strings.EqualFold(text, name[:3]) {
			return i, true
		}
	}
	return 0, false
}

// bounds reads a field such as 1-5.
func bounds(field string, least, most int, names []string) (from, to int, ok bool) {
	first, last, ok := strings.Cut(field, "-")
	from, ok1 := value(first, least, most, names)
	to, ok2 := value(last, least, most, names)
	return from, to, ok && ok1 && ok2 && from <= to
}

// numbers reads a field such as 1 or 1,15.
func numbers(field string, least, most int, names []string) (all []int, ok bool) {
	for text := range strings.SplitSeq(field, ",") {
		n, ok := value(text, least, most, names)
		if !ok {
			return nil, false
		}
		all = append(all, n)
	}
	return all, true
}

func texts(numbers []int, format string) (all []string) {
	for _, n := range numbers {
		all = append(all, fmt.Sprintf(format, n))
	}
	return all
}

func named(numbers []int, names []string) (all []string) {
	for _, n := range numbers {
		all = append(all, names[n])
	}
	return all
}
