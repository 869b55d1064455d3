package web

import (
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

// timeElement is a time that the script rewrites once a second if it has an attribute for that.
func timeElement(t view.Time, attribute markup, text string) markup {
	if t.IsZero() {
		return none
	}
	return m(`<time datetime="%s" title="%s UTC"%s>%s</time>`, t.Format("2006-01-02T15:04:05.000Z"), t.Format("2006-01-02 15:04:05"),
		when(attribute != "", ` data-%s="%d"`, attribute, t.UnixMilli()), text)
}

// ago is the age of something, as an element.
func ago(t view.Time) markup {
	return timeElement(t, "ago", view.Rough(time.Since(t.Time))+" ago")
}

// in is a countdown, as an element.
func in(t view.Time) markup {
	left := time.Until(t.Time)
	if left < 0 {
		return timeElement(t, "in", "due "+view.Rough(-left)+" ago")
	}
	return timeElement(t, "in", "in "+view.Rough(left))
}

// clock is a time of the day, as an element.
func clock(t view.Time) markup { return timeElement(t, "", t.Clock(time.Now())) }
