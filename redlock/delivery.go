package redlock

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Delivery tells what WithSequence counts: sequences that were granted, or those that were
// completed. The words are those of message delivery.
type Delivery int

// The deliveries.
const (
	// AtMostOnce grants a sequence to one lease. If that holder dies, nobody gets the sequence
	// again.
	AtMostOnce Delivery = iota
	// AtLeastOnce grants a sequence until one lease on it was ended by Lease.Complete.
	AtLeastOnce
)

// String returns "at most once" or "at least once".
func (d Delivery) String() string {
	switch d {
	case AtMostOnce:
		return "at most once"
	case AtLeastOnce:
		return "at least once"
	default:
		return "Delivery(" + strconv.Itoa(int(d)) + ")"
	}
}

// MaxSequence bounds the numbers of WithSequence: scripts on the servers count in doubles, which
// are exact up to 2^53. Milliseconds since 1970 stay below it for 285,000 years.
const MaxSequence = wire.MaxSequence

type leaseOption func(*leaseConfig) error

func (o leaseOption) applyLease(l *leaseConfig) error { return o(l) }

// WithSequence makes the lease one of a sequence on its key: the lease is granted only if n is
// greater than every number that was granted on the key before (AtMostOnce), or that was completed
// (AtLeastOnce). Otherwise the error is a *DoneError. The number is checked and recorded by the
// same script that grants, so whoever asks a quorum later finds it on at least one node that
// remembers.
//
// n is between 1 and MaxSequence; the tick of a schedule in milliseconds since 1970 is a good one.
// keep is how long the nodes remember after the last lease with WithSequence on the key, at least
// the TTL and at most MaxKeep: longer than any holder of an old number may come late. A key that is
// paused, and resumed, is remembered for 400 days from then on, or until the next lease for longer
// (Quorum.Pause). Leases on the key without WithSequence are not counted.
//
// A server that was restarted, or lost its data, has no vote for a number until it knows again how
// far the sequence has come: it learns that from a quorum of the other nodes, when it is next asked
// for a number, when somebody reads (Quorum.Sequence), or by itself (Quorum.KeepSequence). So
// servers without persistence may be restarted one after the other, if each is restored before the
// next is restarted. The first number of a new key is granted after that too, and takes two round
// trips more.
//
// It is not promised when a quorum of nodes loses its data before one of them is restored: those
// that are left, or what the servers had on disk, then decide, and an error is logged if there was
// anything. If a node is to be restored while another does not answer, Q - 1 of the others are
// enough, and a number that neither of them knows may be granted again. Nor is a number granted for
// certain: a holder that dies between the first and the last vote may leave numbers that nobody
// got, and so may an attempt that fails while a node is restored from what it recorded. AtMostOnce
// does not give them again if a quorum has them. WithoutRestartGate nodes count as knowing whatever
// they have.
func WithSequence(n int64, d Delivery, keep time.Duration) LeaseOption {
	return leaseOption(func(l *leaseConfig) error {
		switch {
		case n < 1 || n > MaxSequence:
			return &OptionError{"WithSequence", fmt.Sprintf("sequence %d is not between 1 and MaxSequence", n)}
		case d != AtMostOnce && d != AtLeastOnce:
			return &OptionError{"WithSequence", fmt.Sprintf("%v is neither AtMostOnce nor AtLeastOnce", d)}
		case keep < time.Millisecond:
			return &OptionError{"WithSequence", fmt.Sprintf("numbers are to be kept for %v: use longer than a holder of an old one may come late", keep)}
		case keep > MaxKeep:
			return &OptionError{"WithSequence", fmt.Sprintf("numbers are to be kept for %v, which is above the maximum of %v", keep, MaxKeep)}
		}
		l.once = &once{n: n, delivery: d, keep: keep}
		return nil
	})
}

// WithTick is WithSequence for the ticks of a schedule: the number is the tick in milliseconds
// since 1970. In addition a server refuses, with an error, a tick that is ahead of its own clock by
// more than the allowance for clock skew (WithClockSkew) and a second. Else one process with a
// wrong clock could use up everybody's ticks for a year.
func WithTick(tick time.Time, d Delivery, keep time.Duration) LeaseOption {
	return leaseOption(func(l *leaseConfig) error {
		if err := WithSequence(tick.UnixMilli(), d, keep).applyLease(l); err != nil {
			return &OptionError{"WithTick", err.(*OptionError).Reason}
		}
		l.once.tick, l.once.due = true, tick.UnixMilli()
		return nil
	})
}

// WithDue says when a tick of WithTick was due, where that is not its number: pauses go by that
// (Quorum.Pause). A tick of an interval has the beginning of that for its number. Without WithTick
// it has no effect.
func WithDue(due time.Time) LeaseOption {
	return leaseOption(func(l *leaseConfig) error {
		if ms := due.UnixMilli(); ms < 1 || ms > MaxSequence {
			return &OptionError{"WithDue", fmt.Sprintf("%v is no time that ticks may have", due)}
		}
		l.due = due
		return nil
	})
}

// MaxLabelLength bounds a label in bytes, see WithLabel.
const MaxLabelLength = wire.MaxLabelLength

// WithLabel has the nodes record a text with the number of WithSequence or WithTick, for others to
// read: SequenceState.Label and DoneError.Label are that of the last grant. It decides nothing. It
// is at most MaxLabelLength bytes of UTF-8; without WithSequence it has no effect.
func WithLabel(text string) LeaseOption {
	return leaseOption(func(l *leaseConfig) error {
		if len(text) > MaxLabelLength || !utf8.ValidString(text) {
			return &OptionError{"WithLabel", fmt.Sprintf("must be at most %d bytes of UTF-8, not %d", MaxLabelLength, len(text))}
		}
		l.label = text
		return nil
	})
}

// once is what WithSequence asks for.
type once struct {
	n        int64
	delivery Delivery
	keep     time.Duration
	tick     bool  // n is a time in milliseconds
	due      int64 // of a tick, likewise
	label    string
}

// words are what the scripts need to know of the sequence; nil for a lease without one.
func (o *once) words() []string {
	if o == nil {
		return nil
	}
	return wire.Once{Number: o.n, Keep: milliseconds(o.keep), Repeated: o.delivery == AtLeastOnce, IsTime: o.tick, Label: o.label, Due: o.due}.Words()
}

// DoneError reports a sequence that WithSequence does not grant. It matches ErrDone.
type DoneError struct {
	Key      string
	Sequence int64 // that was asked for
	Granted  int64 // the largest that was granted, as far as the nodes that were asked know
	// Completed is the largest that was completed. If it is below Sequence, the holder of Granted
	// may still have been at work when its lease ended, or it may have died.
	Completed int64
	Identity  string // the last holder's, see WithIdentity; empty if not known
	Label     string // of the grant of Granted, see WithLabel
	// Self reports that the last holder has the caller's own identity and has not completed the
	// number: a lease of this process, or an earlier attempt that failed and is being taken back.
	Self bool
}

func (e *DoneError) Error() string {
	state := "granted, and not known to be completed"
	if e.Completed >= e.Sequence {
		state = "completed"
	}
	return fmt.Sprintf("redlock: sequence %d of %q was %s: the last was %d, by %s", e.Sequence, e.Key, state, max(e.Granted, e.Completed), nameOr(e.Identity))
}

func nameOr(identity string) string {
	if identity == "" {
		return "somebody"
	}
	return shown(identity)
}

// Is reports whether target is ErrDone.
func (e *DoneError) Is(target error) bool { return target == ErrDone }

// ErrorType returns the stable value "done" for the error.type attribute of traces and metrics.
func (e *DoneError) ErrorType() string { return "done" }

// done counts the nodes that refused because of the sequence, or of a pause, and reports whether
// one of them knows it to be completed.
func done(replies []vote.Reply, n int64) (nodes int, completed bool) {
	for _, rep := range replies {
		if rep.More().Record == nil {
			continue
		}
		if rep.Verdict == wire.Refused {
			nodes++
		}
		completed = completed || rep.More().Record.Completed >= n
	}
	return nodes, completed
}

// doneError describes what the nodes know.
func (a *acquisition) doneError(replies []vote.Reply) *DoneError {
	e := &DoneError{Key: a.keys.Name, Sequence: a.cfg.once.n}
	for _, rep := range replies {
		r := rep.More().Record
		if r == nil {
			continue
		}
		e.Completed = max(e.Completed, r.Completed)
		granted, label := r.Granted, r.Label
		if rep.Verdict == wire.OK {
			granted, label = r.Before, r.LabelBefore // what it was granted is this attempt's, which has failed
		} else if granted >= e.Granted && r.Owner != "" {
			e.Identity = wire.OwnerIdentity(r.Owner)
		}
		if granted > e.Granted || granted == e.Granted && e.Label == "" {
			e.Granted, e.Label = granted, label
		}
	}
	e.Self = e.Completed < e.Sequence && e.Identity != "" && e.Identity == a.cfg.identity
	return e
}

// grant is what the nodes that granted a lease with WithSequence knew.
type grant struct {
	attempts int           // on its number, this one included
	previous SequenceState // as it was before
}

func grantIn(replies []vote.Reply) *grant {
	g := &grant{attempts: 1}
	for _, rep := range replies {
		if rep.Verdict != wire.OK || rep.More().Record == nil {
			continue
		}
		g.attempts = max(g.attempts, rep.More().Record.Attempts)
		g.previous.grant(rep.More().Record.Before, rep.More().Record.LabelBefore)
		g.previous.complete(rep.More().Record)
	}
	return g
}
