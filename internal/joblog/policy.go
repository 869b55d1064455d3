package joblog

import (
	"fmt"
	"time"
)

// Grace is how late a tick is still run without a catch-up. It is longer than the clocks of
// machines that NTP keeps differ, than a hand-over in order takes, and than a busy machine stands
// still.
const Grace = 5 * time.Second

// CatchUp is what becomes of ticks that nobody ran at their time.
type CatchUp int

// The kinds of catch-up.
const (
	CatchUpNone   CatchUp = iota // the newest is run if it is late by Grace at most
	CatchUpLatest                // the newest is run if it is within the window
	CatchUpAll                   // each within the window is run, in order
)

// String is the kind as people read it.
func (c CatchUp) String() string { return wordOf(int(c), "none", "latest", "all") }

// Delivery is what a tick becomes whose run did not complete.
type Delivery int

// The kinds of delivery.
const (
	AtMostOnce  Delivery = iota // it counts as run from the grant on
	AtLeastOnce                 // it is owed again, as long as it is within the window
)

// String is the kind as people read it.
func (d Delivery) String() string { return wordOf(int(d), "at most once", "at least once") }

// Overlap is what becomes of ticks that come while a run goes on.
type Overlap int

// The kinds of overlap.
const (
	OverlapSkip   Overlap = iota // they are left out
	OverlapQueue                 // the last of them is run when the run is over, however late
	OverlapCancel                // the same; the caller ends the run when the tick comes
)

// String is the kind as people read it.
func (o Overlap) String() string { return wordOf(int(o), "skip", "queue", "cancel") }

func wordOf(i int, words ...string) string {
	if i < 0 || i >= len(words) {
		return fmt.Sprintf("unknown (%d)", i)
	}
	return words[i]
}

// Policy is what a job's options say, and its pause.
type Policy struct {
	CatchUp  CatchUp
	Window   time.Duration // of CatchUpLatest and CatchUpAll
	Delivery Delivery
	Overlap  Overlap
	Limit    int       // of runs since the definition was made; 0 for none
	Floor    time.Time // ticks up to it are paused; the later of the pauses of the job and of all
}

// age is how old a tick may be.
func (p Policy) age() time.Duration {
	if p.CatchUp == CatchUpNone {
		return Grace
	}
	return p.Window
}

// Table is the due times of a definition. They do not depend on who asks, or when.
type Table interface {
	// Next returns the first due time after another, the zero time if there is none. Of a Chain
	// that is the first of all.
	Next(after time.Time) time.Time
	// From bounds what is owed: due times up to it are not, though a backfill may have them. It
	// is the moment in which the definition was made, one nanosecond less if that is a due time
	// itself (a start at once), and the zero time if the definition names its times.
	From() time.Time
}

// Chain is a Table whose next due time the last run decides. Record.Next has it.
type Chain interface {
	Table
	// Follow returns the due time that follows a run that began or ended then, be it beyond the
	// end: another version of the job may end later.
	Follow(run time.Time) time.Time
	// Within returns a time if it is before the end, else the zero time.
	Within(at time.Time) time.Time
	// FromEnd reports whether Follow counts from the end of a run, and not from its beginning.
	FromEnd() bool
}

// Definition is a job's schedule.
type Definition struct {
	Words string                      // canonical: two definitions with the same due times have the same
	Table func(since time.Time) Table // the due times if the definition was made then
	Rest  time.Duration               // how far they may be apart, beyond what the next two are; roughly
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

// Complete reports whether the run counts as done. Runs that do not are owed again with
// AtLeastOnce.
func (o Outcome) Complete() bool { return o == Succeeded || o == Failed || o == Cancelled }

// Why is why a run is begun.
type Why string

// The reasons of runs.
const (
	OnTime   Why = "on_time"
	Late     Why = "late"     // by more than Grace
	Queued   Why = "queued"   // an earlier run overlapped it
	Again    Why = "again"    // an earlier run of the tick did not complete
	Ordered  Why = "ordered"  // RunNow: it has no tick
	Backfill Why = "backfill" // see Record.Backfill
)

// Reason is why a tick is left out.
type Reason string

// The reasons of ticks that are left out.
const (
	Missed     Reason = "missed"     // it is too old
	Superseded Reason = "superseded" // a newer one is run
	Overlapped Reason = "overlap"    // it came while a run went on
	Paused     Reason = "paused"
)
