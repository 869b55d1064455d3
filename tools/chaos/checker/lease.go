package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/harness/report"
)

// Lease is a lease that a client was given.
type Lease struct {
	ID      string
	Life    string // of the client
	Key     string
	Token   uint64
	TTL     time.Duration
	Granted history.Instant // Acquire had returned
	End     history.Instant // it was over for its holder: the first of release, deadline, loss and death
	EndedBy string
	Release history.Instant // zero if it was not released
	Reason  string          // of its loss; empty if none was seen
	Tick    int64           // when it was due; zero if it is none

	starts []history.Instant // of the rounds that set its keys, as far as is known, ascending; never empty
	cut    history.Instant   // when an excused overlap took it away; zero if none did
	free   bool              // its token's order is excused
}

// live reports whether the lease was live at some time.
func (l *Lease) live() bool { return l.Granted < l.End }

// begun is the start of the round that acquired it.
func (l *Lease) begun() history.Instant { return l.starts[0] }

// renewed is the start of the last round, known to have set its keys, that had begun by then.
func (l *Lease) renewed(by history.Instant) history.Instant {
	last := l.starts[0]
	for _, s := range l.starts {
		if s <= by {
			last = s
		}
	}
	return last
}

func (l *Lease) String() string {
	return fmt.Sprintf("%s (token %d, live %s to %s, ended by %s)", l.ID, l.Token, l.Granted, l.End, l.EndedBy)
}

// want is an acquisition, whatever came of it.
type want struct {
	key      string
	from, to history.Instant
	way      string
	tick     bool
	err      string // type of its error; empty for a lease or if it never returned
	lease    *Lease // nil if there was none
}

// reader builds leases from one client's journal.
type reader struct {
	settings Settings
	wants    map[string]*want
	order    []*want
	faults   report.Violations
}

// leases returns what was asked for and got, in the order of the grants.
func (h *History) leases() (leases []*Lease, wants []*want, faults report.Violations) {
	killed := make(map[string]history.Instant)
	for _, life := range h.Lives {
		killed[life.Name] = life.Killed
	}
	for life, records := range h.Records {
		r := &reader{settings: h.Settings, wants: make(map[string]*want)}
		for _, rec := range records {
			r.read(life, rec)
		}
		r.bury(records, killed[life])
		wants = append(wants, r.order...)
		faults = append(faults, r.faults...)
	}
	for _, w := range wants {
		if w.lease != nil {
			leases = append(leases, w.lease)
		}
	}
	slices.SortFunc(leases, func(a, b *Lease) int { return cmp.Or(cmp.Compare(a.Granted, b.Granted), cmp.Compare(a.ID, b.ID)) })
	return leases, wants, faults
}

func (r *reader) read(life string, rec record.Record) {
	w := r.wants[rec.Lease]
	if rec.Kind == record.Want {
		w = &want{key: rec.Key, from: rec.At, way: rec.Text, tick: rec.Text == "tick"}
		w.lease = &Lease{ID: rec.Lease, Life: life, Key: rec.Key, TTL: rec.TTL}
		r.wants[rec.Lease] = w
		r.order = append(r.order, w)
		return
	}
	if w == nil {
		return
	}
	l := w.lease
	switch rec.Kind {
	case record.Grant:
		w.to, l.Granted, l.Token, l.Tick = rec.At, rec.At, rec.Token, rec.Tick
		r.extend(l, rec.Deadline)
	case record.Fail:
		w.to, w.err, w.lease = rec.At, rec.Text, nil
	case record.Valid:
		outlived(&r.faults, l, rec)
		r.extend(l, rec.Deadline)
	case record.Lost:
		l.Reason = rec.Text
		l.ended(rec.At, "loss: "+rec.Text)
	case record.Release:
		l.Release = rec.At
		l.ended(rec.At, "release")
	}
}

// ended notes one of the ends of a lease.
func (l *Lease) ended(at history.Instant, by string) {
	if l.End == 0 || at < l.End {
		l.End, l.EndedBy = at, by
	}
}

// step is by how much a deadline must have moved to come from another round.
const step = time.Millisecond

// extend notes a deadline of the lease.
func (r *reader) extend(l *Lease, deadline history.Instant) {
	start := deadline.Add(-r.settings.validity(l.TTL))
	if n := len(l.starts); n == 0 || start > l.starts[n-1].Add(step) {
		l.starts = append(l.starts, start)
	}
}

// bury ends what a journal leaves open.
func (r *reader) bury(records []record.Record, killed history.Instant) {
	death := killed
	if death == 0 && len(records) > 0 {
		death = records[len(records)-1].At
	}
	for _, w := range r.order {
		if w.to == 0 { // killed while it asked
			w.to, w.lease = max(death, w.from), nil
		}
		l := w.lease
		if l == nil {
			continue
		}
		l.ended(l.starts[len(l.starts)-1].Add(r.settings.validity(l.TTL)), "deadline")
		l.ended(death, "death")
	}
}
