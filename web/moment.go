package web

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// moment is a time in a document: in JSON in UTC with milliseconds, and absent if it is zero. Times
// that people tell may be any.
type moment struct{ time.Time }

func at(t time.Time) moment {
	if t.Year() < 1970 || t.Year() > 9999 {
		return moment{}
	}
	return moment{t.UTC().Truncate(time.Millisecond)}
}

// span is a duration in a document: in JSON in milliseconds.
type span time.Duration

// MarshalJSON writes microseconds behind the point.
func (s span) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(time.Duration(s).Microseconds())/1000, 'f', -1, 64), nil
}

// rough is a time that has passed as people say it: two units at most. assets/app.js says the same.
func rough(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%d min", s/60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
	}
}

// precise is how long something took.
func precise(s span) string {
	d := time.Duration(s)
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d.Microseconds()/100)/10, 'f', -1, 64) + " ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", math.Floor(d.Seconds()*10)/10)
	default:
		return rough(d)
	}
}

// clockOf is a time as a row shows it: with its day if that is not today's.
func clockOf(t moment, now time.Time) string {
	layout := "15:04:05"
	switch y, m, d := now.UTC().Date(); {
	case t.Year() != y:
		layout = "2006-01-02 15:04:05"
	case t.Month() != m || t.Day() != d:
		layout = "2 Jan 15:04:05"
	}
	return t.Format(layout)
}

// timeElement is a time that the script rewrites once a second if it has an attribute for that.
func timeElement(t moment, attribute markup, text string) markup {
	if t.IsZero() {
		return none
	}
	return m(`<time datetime="%s" title="%s UTC"%s>%s</time>`, t.Format("2006-01-02T15:04:05.000Z"), t.Format("2006-01-02 15:04:05"),
		when(attribute != "", ` data-%s="%d"`, attribute, t.UnixMilli()), text)
}

// ago is the age of something, as an element.
func ago(t moment) markup {
	return timeElement(t, "ago", rough(time.Since(t.Time))+" ago")
}

// in is a countdown, as an element.
func in(t moment) markup {
	left := time.Until(t.Time)
	if left < 0 {
		return timeElement(t, "in", "due "+rough(-left)+" ago")
	}
	return timeElement(t, "in", "in "+rough(left))
}

// clock is a time of the day, as an element.
func clock(t moment) markup { return timeElement(t, "", clockOf(t, time.Now())) }
