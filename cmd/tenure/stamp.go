package main

import (
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

// now is the present, for people in the zone of the terminal.
func now() view.Time { return view.At(time.Now()) }

// clock is the time of day, with the date where that is another one.
func (w *page) clock(at view.Time) string {
	if at.IsZero() {
		return ""
	}
	local, today := at.Local(), w.now.Local()
	if local.Year() == today.Year() && local.YearDay() == today.YearDay() {
		return local.Format("15:04:05")
	}
	return local.Format("2006-01-02 15:04:05")
}

// ago is the time with its distance from now.
func (w *page) ago(at view.Time) string {
	if at.IsZero() {
		return ""
	}
	if d := at.Sub(w.now.Time); d > 0 {
		return fmt.Sprintf("%s (in %s)", w.clock(at), span(d))
	}
	return fmt.Sprintf("%s (%s ago)", w.clock(at), span(w.now.Sub(at.Time)))
}

// span is a duration in its two largest units.
func span(d time.Duration) string {
	switch d = d.Abs(); {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		d = d.Round(time.Hour)
		return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}
