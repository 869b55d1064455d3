package redlock

import (
	"context"
	"time"
)

// Sequence is how far the leases on a key have come that were acquired with WithOnce.
type Sequence struct {
	Granted   int64 // the largest number that a node has granted; 0 for none
	Completed int64 // the largest number that was completed, see Lease.Complete; 0 for none
	// CompletedAt is when Completed was, by the clock of the server that says the earliest; zero for none.
	CompletedAt time.Time
	Attempts    int    // how often Granted was granted
	Identity    string // who was the last to be granted one, see WithIdentity; empty if not known
}

// complete takes a completion that a node knows of.
func (s *Sequence) complete(r *record) {
	at := time.UnixMilli(r.completedAt)
	switch {
	case r.completed > s.Completed:
		s.Completed, s.CompletedAt = r.completed, at
	case r.completed == s.Completed && r.completed > 0 && at.Before(s.CompletedAt):
		s.CompletedAt = at
	}
}

// observedOnce has the nodes asked for their records too.
var observedOnce = leaseConfig{once: &once{}}

// Sequence reads how far the key has come from a quorum of nodes. Whatever was granted or completed before the call
// is in the answer, as long as nodes keep their data. Granted may be more than anybody has: an attempt that is under way,
// or that failed and is not rolled back yet, counts.
//
// Errors: *QuorumError when too few nodes answered, *OptionError, ErrClosed, or ctx's own error.
func (q *Quorum) Sequence(ctx context.Context, key string) (Sequence, error) {
	keys, err := q.cfg.keyset(key)
	if err != nil {
		return Sequence{}, err
	}
	if q.isClosed() {
		return Sequence{}, ErrClosed
	}
	o, err := q.observe(ctx, &attempt{keys: keys, cfg: observedOnce}, nil)
	if err != nil {
		return Sequence{}, err
	}
	if !o.success {
		return Sequence{}, q.quorumError(OpObserve, key, o)
	}
	var s Sequence
	for _, rep := range o.replies {
		r := rep.record
		if r == nil {
			continue
		}
		if r.granted > s.Granted {
			s.Granted, s.Attempts, s.Identity = r.granted, r.attempts, ownerIdentity(r.owner)
		} else if r.granted == s.Granted && r.attempts > s.Attempts {
			s.Attempts = r.attempts
		}
		s.complete(r)
	}
	return s, nil
}
