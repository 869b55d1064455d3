package redlock

import (
	"context"
	"time"
)

// Sequence is how far the leases on a key have come that were acquired with WithOnce.
type Sequence struct {
	Granted   int64 // the largest number that a node has granted; 0 for none
	Completed int64 // the largest number that was completed, see Lease.Complete; 0 for none
	// BeganAt and CompletedAt are when Completed was granted and when it was completed, by the clocks of the servers that say the
	// earliest; zero if not known.
	BeganAt, CompletedAt time.Time
	Attempts             int    // how often Granted was granted
	Identity             string // who was the last to be granted one, see WithIdentity; empty if not known
}

// complete takes a completion that a node knows of.
func (s *Sequence) complete(r *record) {
	if r.completed == 0 || r.completed < s.Completed {
		return
	}
	if r.completed > s.Completed {
		s.Completed, s.BeganAt, s.CompletedAt = r.completed, time.Time{}, time.Time{}
	}
	s.BeganAt = earlier(s.BeganAt, r.beganAt)
	s.CompletedAt = earlier(s.CompletedAt, r.completedAt)
}

// earlier returns the earlier of a time and one in milliseconds, either of which may not be known.
func earlier(t time.Time, ms int64) time.Time {
	at := time.UnixMilli(ms)
	if ms == 0 || !t.IsZero() && t.Before(at) {
		return t
	}
	return at
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
	o, err := q.observe(ctx, &attempt{keys: &keys, cfg: observedOnce}, nil)
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
