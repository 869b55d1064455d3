package joblog

import (
	"fmt"
	"time"
)

// Grace is how late a tick is still run without a catch-up. It is longer than the difference
// between clocks that NTP keeps, than a regular hand-over, and than a pause of a busy machine.
const Grace = 5 * time.Second

// CatchUp decides which ticks are run that no replica ran at their time.
type CatchUp int

// The kinds of catch-up.
const (
	CatchUpNone   CatchUp = iota // the newest is run if it is late by Grace at most
	CatchUpLatest                // the newest is run if it is within the window
	CatchUpAll                   // each within the window is run, in order
)

// String returns the kind for people.
func (c CatchUp) String() string { return wordOf(int(c), "none", "latest", "all") }

// Delivery decides what becomes of a tick whose run did not complete.
type Delivery int

// The kinds of delivery.
const (
	AtMostOnce  Delivery = iota // the tick counts as run from the grant on
	AtLeastOnce                 // the tick is owed again, as long as it is within the window
)

// String returns the kind for people.
func (d Delivery) String() string { return wordOf(int(d), "at most once", "at least once") }

// Overlap decides what becomes of ticks that come during a run.
type Overlap int

// The kinds of overlap.
const (
	OverlapSkip   Overlap = iota // they are left out
	OverlapQueue                 // the last of them is run after the run, however late
	OverlapCancel                // as OverlapQueue, and the caller ends the run when the tick comes
)

// String returns the kind for people.
func (o Overlap) String() string { return wordOf(int(o), "skip", "queue", "cancel") }

func wordOf(i int, words ...string) string {
	if i < 0 || i >= len(words) {
		return fmt.Sprintf("unknown (%d)", i)
	}
	return words[i]
}

// Policy is the options of a job, and its pause.
type Policy struct {
	CatchUp  CatchUp
	Window   time.Duration // of CatchUpLatest and CatchUpAll
	Delivery Delivery
	Overlap  Overlap
	Limit    int       // of runs since the definition was made; 0 for none
	Floor    time.Time // ticks up to it are paused: the later end of the job's pause and of the pause of all jobs
}

// age returns how late a tick may be run.
func (p Policy) age() time.Duration {
	if p.CatchUp == CatchUpNone {
		return Grace
	}
	return p.Window
}

// Table is the due times of a definition. They do not depend on the replica, nor on when it asks.
type Table interface {
	// Next returns the first due time after another; zero if there is none. The Next of a Chain
	// returns the first due time of all.
	Next(after time.Time) time.Time
	// From returns the time up to which no due time is owed, though a backfill may run it. It is
	// the moment in which the definition was made, or one nanosecond before if that moment is a due
	// time itself (a start at once). It is zero if the definition names its times.
	From() time.Time
}

// Chain is a Table whose next due time the last run decides. Record.Next has it.
type Chain interface {
	Table
	// Follow returns the due time after a run that began or ended at a time. It may be beyond the
	// end, because another version of the job may end later.
	Follow(run time.Time) time.Time
	// Within returns a time if it is before the end, else the zero time.
	Within(at time.Time) time.Time
	// FromEnd reports whether Follow counts from the end of a run, and not from its beginning.
	FromEnd() bool
}

// Definition is a job's schedule.
type Definition struct {
	Words string                      // canonical: definitions with the same due times have the same words
	Table func(since time.Time) Table // the due times of a definition that was made at since
	Rest  time.Duration               // roughly how far due times may be apart, if the next two are closer
}

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Succeeded Outcome = "ok"
	Failed    Outcome = "failed"    // the task returned an error by itself
	Panicked  Outcome = "panicked"  // not complete
	Cancelled Outcome = "cancelled" // by an operator, or for a later tick
	Stopped   Outcome = "stopped"   // it was told to end and returned an error; not complete
	CutShort  Outcome = "cut_short" // its replica was killed, or lost the lease; not complete
)

// Complete reports whether the run counts as done. With AtLeastOnce a tick is owed again if its run
// is not complete.
func (o Outcome) Complete() bool { return o == Succeeded || o == Failed || o == Cancelled }

// Why is the reason of a run.
type Why string

// The reasons of runs.
const (
	OnTime   Why = "on_time"
	Late     Why = "late"     // by more than Grace
	Queued   Why = "queued"   // an earlier run had overlapped the tick
	Again    Why = "again"    // an earlier run of the tick did not complete
	Ordered  Why = "ordered"  // RunNow: it has no tick
	Backfill Why = "backfill" // see Record.Backfill
)

// Reason is the reason for which a tick is left out.
type Reason string

// The reasons of ticks that are left out.
const (
	Missed     Reason = "missed"     // it is too old
	Superseded Reason = "superseded" // a newer tick is run
	Overlapped Reason = "overlap"    // it came during a run
	Paused     Reason = "paused"
)
