package roster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// compare looks for what differs in the answers.
func (r *Roster) compare(f *finding, replies []vote.Reply) {
	for at := range replies {
		known := replies[at].More().Roster
		if known == nil {
			continue
		}
		for k := range known.Lists {
			if l := &known.Lists[k]; f.list == nil && l.Print() != r.self.Print() {
				f.list, f.at = r.another(l, at), at
			}
		}
		for _, k := range known.Servers {
			for i, id := range f.ids {
				if f.twins[i] == nil && id != "" && r.cfg.Names[i] == k.Name && id != k.ID {
					f.twins[i] = &wire.Fault{Condition: wire.SeveralServers, Detail: fmt.Sprintf("%s is the server %.8s for this process, and %.8s for %s, which saw it %s ago (%s knows)",
						k.Name, id, k.ID, k.By, round1(k.Age), r.address(at))}
				}
			}
		}
	}
}

// another is how another list differs.
func (r *Roster) another(l *wire.List, at int) *wire.Fault {
	detail := fmt.Sprintf("%s has the nodes %s, and this process has %s", l.By, strings.Join(l.Names, ", "), strings.Join(r.self.Names, ", "))
	if slices.Equal(l.Names, r.self.Names) {
		detail = fmt.Sprintf("%s uses the same nodes %s the restart gate, and this process does not: give all processes WithoutRestartGate or none",
			l.By, map[bool]string{true: "with", false: "without"}[l.Gate])
	}
	return &wire.Fault{Condition: wire.AnotherList, Detail: fmt.Sprintf("%s (seen %s ago, as %s knows)", detail, round1(l.Age), r.address(at))}
}

// round1 is a time for people.
func round1(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

func (r *Roster) address(i int) string { return r.cfg.Node(i).Address() }

// report tells what a poll has found about processes that go on, or were refused.
func (r *Roster) report(f *finding, replies []vote.Reply) {
	for _, i := range f.nodes {
		known := replies[i].More().Roster
		if known == nil {
			continue
		}
		var why *wire.Fault
		switch {
		case !f.goesOn:
		case f.list != nil && f.at == i:
			why = f.list
		case f.counts[i]:
			why = f.twins[i]
		}
		r.cfg.Observer.Differs(i, why)
		others := slices.DeleteFunc(slices.Clone(known.Refused), func(o wire.Refusal) bool { return o.By == r.cfg.Identity })
		r.cfg.Observer.Refused(i, others)
	}
}

// hear takes over what nodes know, and tells what they cannot be told.
func (r *Roster) hear(nodes []int, replies []vote.Reply, sent clock.Instant, wrote bool) {
	r.mu.Lock()
	unwritten := make(map[int]*wire.Fault)
	var ttl, skew time.Duration
	for i := range r.seats {
		s, rep := &r.seats[i], &replies[i]
		if slices.Contains(nodes, i) {
			known, why := rep.More().Roster, (*wire.Fault)(nil)
			switch {
			case known != nil:
				s.seen, s.ttl, s.skew = sent, 0, 0
				for _, l := range known.Lists {
					s.ttl, s.skew = max(s.ttl, l.MaxTTL), max(s.skew, l.Skew)
				}
				if known.Unwritten != "" {
					why = unwrittenBy(errors.New(known.Unwritten))
				}
			case rep.Err != nil && wire.IsServerError(rep.Err):
				s.seen, why = sent, unwrittenBy(rep.Err)
			}
			switch {
			case why != nil:
				// A server that refuses more than that loses its vote with the next look.
				if s.failing++; s.failing > 2 && !s.logged {
					s.logged, unwritten[i] = true, why
				}
			case known != nil && wrote:
				if s.logged {
					unwritten[i] = nil
				}
				s.failing, s.logged = 0, false
			}
		}
		ttl, skew = max(ttl, s.ttl), max(skew, s.skew)
	}
	longer := ttl > max(r.cfg.MaxTTL, r.cfg.Limits.TTL()) || skew > max(r.cfg.Skew, r.cfg.Limits.Skew())
	r.cfg.Limits.Set(ttl, skew)
	r.mu.Unlock()
	if longer {
		r.cfg.Observer.Longer(&wire.Fault{Condition: wire.Quarantined, Detail: r.Longer()})
	}
	for _, i := range nodes {
		if known := replies[i].More().Roster; known != nil {
			r.cfg.Observer.Lead(i, known.Lead, r.now())
		}
	}
	for i, why := range unwritten {
		r.cfg.Observer.Unwritten(i, why)
	}
}

// Longer is why the quarantine is longer than this process needs, by the nodes that say so; empty
// if it is not.
func (r *Roster) Longer() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ttl, skew := r.cfg.MaxTTL, r.cfg.Skew
	var ttlBy, skewBy string
	for i := range r.seats {
		s, by := &r.seats[i], r.cfg.Keys.Lock+" on "+r.address(i)
		if s.ttl > ttl {
			ttl, ttlBy = s.ttl, fmt.Sprintf(", a TTL of %v by %s", s.ttl, by)
		}
		if s.skew > skew {
			skew, skewBy = s.skew, fmt.Sprintf(", a skew of %v by %s", s.skew, by)
		}
	}
	if ttlBy == "" && skewBy == "" {
		return ""
	}
	return "others use a longer TTL or clock skew than this process, and so a longer quarantine" + ttlBy + skewBy
}

// unwrittenBy is why a server cannot keep who uses it, by its error.
func unwrittenBy(err error) *wire.Fault {
	why := &wire.Fault{Condition: wire.Unsupported, Detail: err.Error(), Err: err}
	if known := wire.FaultOf(err); known != nil {
		why.Condition, why.Detail = known.Condition, known.Cause()
	} else if condition, ok := wire.ConditionOf(err.Error()); ok {
		why.Condition = condition
	}
	why.Detail = "it cannot keep who uses it: " + wire.Short(why.Detail)
	return why
}
