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
		return fmt.Sprintf("%s (in %s)", w.clock(at), view.Rough(d))
	}
	return fmt.Sprintf("%s (%s ago)", w.clock(at), view.Rough(w.now.Sub(at.Time)))
}
