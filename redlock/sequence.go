package redlock

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// SequenceState is how far the leases on a key have come that were acquired with WithSequence.
type SequenceState struct {
	Granted   int64 // the largest number that a node has granted; 0 for none
	Completed int64 // the largest number that was completed, see Lease.Complete; 0 for none
	// BeganAt and CompletedAt are when the lease that completed Completed was granted and when it
	// was completed, by the clock of one server: their difference is for how long it took. Both are
	// zero if no node knows both. Of several nodes that do, they are those of the node that says
	// the earliest CompletedAt.
	BeganAt, CompletedAt time.Time
	Attempts             int    // how often Granted was granted
	Identity             string // the holder to which Granted was granted last, see WithIdentity; empty if not known
	Label                string // of that grant, see WithLabel

	pause Pause
}

// grant takes a number that was granted.
func (s *SequenceState) grant(n int64, label string) {
	if n > s.Granted || n == s.Granted && s.Label == "" {
		s.Granted, s.Label = n, label
	}
}

// complete takes a completion that a node knows of.
func (s *SequenceState) complete(r *wire.Record) {
	if r.Completed < s.Completed {
		return
	}
	if r.Completed > s.Completed {
		s.Completed, s.BeganAt, s.CompletedAt = r.Completed, time.Time{}, time.Time{}
	}
	if r.BeganAt == 0 || r.CompletedAt == 0 {
		return
	}
	if at := time.UnixMilli(r.CompletedAt); s.CompletedAt.IsZero() || at.Before(s.CompletedAt) {
		s.BeganAt, s.CompletedAt = time.UnixMilli(r.BeganAt), at
	}
}

// Sequence reads how far the key has come from a quorum of nodes that know it. Whatever was granted
// or completed before the call is in the answer, as long as WithSequence keeps its promise. Granted
// may be more than anybody has: an attempt that is under way, or that failed and is not rolled back
// yet, counts.
//
// A node that was restarted or emptied and does not know the sequence since is asked to know it
// again first, which takes two round trips more.
//
// Errors: *QuorumError when too few nodes answered, or are not in quarantine, *OptionError,
// ErrClosed, or ctx's own error.
func (q *Quorum) Sequence(ctx context.Context, key string) (SequenceState, error) {
	if q.none() {
		return SequenceState{}, ErrClosed
	}
	if err := checkContext(ctx); err != nil {
		return SequenceState{}, err
	}
	keys, err := q.cfg.keys(key)
	if err != nil {
		return SequenceState{}, err
	}
	return q.sequence(ctx, &keys)
}

func (q *Quorum) sequence(ctx context.Context, keys *wire.Keys) (SequenceState, error) {
	for restores := 0; ; restores++ {
		if !q.begin() {
			return SequenceState{}, ErrClosed
		}
		s, r, err := q.read(ctx, keys)
		if r != nil && restores < maxRestores {
			err = q.restore(ctx, r)[0]
		}
		q.rounds.Done()
		if r == nil || err != nil || r.nothing || restores == maxRestores {
			return s, err
		}
	}
}

// read asks all nodes for what they know. If too few of them do, it returns the restoration of the
// others beside the error.
func (q *Quorum) read(ctx context.Context, keys *wire.Keys) (s SequenceState, r *restoration, err error) {
	rd := q.recall(ctx, keys, q.need, func(int) bool { return true })
	if rd.Wait(ctx, q.cfg.timeout(q.cfg.lease.ttl), &q.waits) != nil {
		return s, nil, newContextError(ctx, keys.Name, nil)
	}
	o := rd.Outcome()
	if !o.Success {
		if nodes := unknowingIn(o.Replies, ofKey); o.Agreed+len(nodes) >= q.need {
			r = &restoration{keys: keys, nodes: nodes}
		}
		return s, r, q.quorumError(OpRecall, keys.Name, o)
	}
	for _, rep := range o.Replies {
		if rep.Verdict == wire.OK && rep.More().Record != nil {
			s.add(rep.More().Record)
		}
	}
	q.restoreLater(rd, q.question(keys), 0)
	return s, nil, nil
}

// add takes what a node knows.
func (s *SequenceState) add(r *wire.Record) {
	if r.Granted > s.Granted || r.Granted == s.Granted && r.Attempts > s.Attempts {
		s.Granted, s.Attempts, s.Identity, s.Label = r.Granted, r.Attempts, wire.OwnerIdentity(r.Owner), r.Label
	}
	s.complete(r)
	switch p := newPause("", r.Mark); {
	case p.Version > s.pause.Version:
		s.pause = p
		s.pause.Nodes = 1
	case p.Version == s.pause.Version && p.Version != 0:
		s.pause.Nodes++
		if p.Since.Before(s.pause.Since) {
			s.pause.Since = p.Since
		}
	}
}
