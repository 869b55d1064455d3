package main

import (
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

// now is the present.
func now() view.Time { return view.At(time.Now()) }

// clock is the time of day, in the zone of the terminal.
func (w *page) clock(at view.Time) string { return view.Time{Time: at.Local()}.Clock(w.now.Time) }

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
