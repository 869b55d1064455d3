package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// lease is a lease that a client was given, or asked for.
type lease struct {
	id, life, key string
	way           string // it was asked for
	token         uint64
	ttl           time.Duration
	asked         history.Instant
	granted       history.Instant // Acquire had returned
	end           history.Instant // it was over for its holder: the first of release, deadline, loss and death
	endedBy       string

	starts []history.Instant // of the rounds that set its keys, as far as is known, ascending; never empty once it was granted
	cut    history.Instant   // when an excused overlap took it away; zero if none did
	free   bool              // its token's order is excused
}

// begun is the start of the round that acquired it.
func (l *lease) begun() history.Instant { return l.starts[0] }

// renewed is the start of the last round, known to have set its keys, that had begun by then.
func (l *lease) renewed(by history.Instant) history.Instant {
	last := l.starts[0]
	for _, s := range l.starts {
		if s <= by {
			last = s
		}
	}
	return last
}

// ended notes one of the ends of a lease.
func (l *lease) ended(at history.Instant, by string) {
	if l.end == 0 || at < l.end {
		l.end, l.endedBy = at, by
	}
}

func (l *lease) String() string {
	return fmt.Sprintf("%s (token %d, live %s to %s, ended by %s)", l.id, l.token, l.granted, l.end, l.endedBy)
}

// holds is the leases of a history, in the order of their grants, and the steps of servers' clocks.
type holds struct {
	*Verdict
	all   []*lease
	steps []step
}

// step is one of a server's wall clock.
type step struct {
	server   int
	from, to history.Instant
	by       time.Duration
}

func (v *Verdict) checkLeases() {
	x := &holds{Verdict: v}
	for _, s := range v.Strikes {
		if s.Jump != 0 {
			x.steps = append(x.steps, step{s.Server, s.From, s.Done, s.Jump}, step{s.Server, s.Heal, s.To, -s.Jump})
		}
	}
	slices.SortStableFunc(x.steps, func(a, b step) int { return cmp.Compare(a.from, b.from) })
	killed := make(map[string]history.Instant)
	for _, life := range v.Lives {
		killed[life.Name] = life.Killed
	}
	for _, life := range slices.Sorted(maps.Keys(v.Records)) {
		x.read(life, v.Records[life], killed[life])
	}
	slices.SortFunc(x.all, func(a, b *lease) int { return cmp.Or(cmp.Compare(a.granted, b.granted), cmp.Compare(a.id, b.id)) })
	x.overlaps()
	x.strangers()
	x.expiries()
	byKey := make(map[string][]*lease)
	for _, l := range x.all {
		byKey[l.key] = append(byKey[l.key], l)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		x.linearize(key, byKey[key])
	}
}

// driftFloor is the fixed part of redlock's allowance for drift, see redlock.WithDrift.
const driftFloor = 2 * time.Millisecond

// validity is how long after the start of its round a lease of that TTL may be relied on: redlock
// subtracts an allowance for clocks that run at different rates (WithDrift).
func (x *holds) validity(ttl time.Duration) time.Duration {
	return ttl - time.Duration(float64(ttl)*redlock.DefaultDrift) - driftFloor
}

// read builds the leases of one journal, and ends what it leaves open.
func (x *holds) read(life string, records []history.Record, killed history.Instant) {
	open, granted := make(map[string]*lease), len(x.all)
	for _, r := range records {
		l := open[r.Lease]
		switch {
		case r.Kind == history.Want:
			x.Counts["acquisitions"]++
			open[r.Lease] = &lease{id: r.Lease, life: life, key: r.Key, ttl: r.TTL, way: r.Text, asked: r.At}
		case r.Kind == history.Votes:
			x.Counts["ms until a quorum voted after the faults"] = max(x.Counts["ms until a quorum voted after the faults"], int(r.At.Sub(x.Over).Milliseconds()))
		case l == nil:
		case r.Kind == history.Grant:
			x.Counts["leases granted"]++
			if l.way == "probe" {
				x.Counts["keys acquired after the faults"]++
			}
			l.granted, l.token = r.At, r.Token
			x.extend(l, r.Deadline)
			x.all = append(x.all, l)
		case r.Kind == history.Fail:
			if l.way == history.OtherList {
				x.Counts["acquisitions with another list that failed: "+r.Text]++
			} else {
				x.Counts["acquisitions that failed: "+r.Text]++
			}
			if l.way == "probe" {
				x.add(Unavailable, r.At, "key %s could not be acquired within %s after the faults: %s", l.key, r.At.Sub(l.asked).Round(time.Millisecond), r.Text)
			}
		case r.Kind == history.Valid:
			x.outlived(l, r)
			x.extend(l, r.Deadline)
		case r.Kind == history.Lost:
			x.Counts["leases lost: "+r.Text]++
			l.ended(r.At, "loss: "+r.Text)
		case r.Kind == history.Release:
			x.Counts["leases released"]++
			l.ended(r.At, "release")
		}
	}
	death := killed
	if death == 0 && len(records) > 0 {
		death = records[len(records)-1].At
	}
	for _, l := range x.all[granted:] {
		l.ended(l.starts[len(l.starts)-1].Add(x.validity(l.ttl)), "deadline")
		l.ended(death, "death")
	}
}

// extend notes a deadline of the lease.
func (x *holds) extend(l *lease, deadline history.Instant) {
	const moved = time.Millisecond // at least, if it comes from another round
	start := deadline.Add(-x.validity(l.ttl))
	if n := len(l.starts); n == 0 || start > l.starts[n-1].Add(moved) {
		l.starts = append(l.starts, start)
	}
}

// outlived checks one answer of Err. The lease must not have been valid after its deadline, as it
// was read after the answer, nor after its loss or release.
func (x *holds) outlived(l *lease, valid history.Record) {
	// By how much the library's clock may differ from the journal's: its clock.Tolerance is 1 ms,
	// and the rest is for reading two clocks one after the other.
	const tolerance = 2 * time.Millisecond
	late := valid.At.Sub(valid.Deadline)
	switch {
	case l.end != 0 && valid.At > l.end:
		x.add(Outlived, valid.At, "key %s: %s was valid again at %s", l.key, l, valid.At)
	case late > tolerance:
		x.add(Outlived, valid.At, "key %s: %s was valid %s after its deadline", l.key, l, late)
	}
}

// overlaps finds every pair of leases on a key that were live at once.
func (x *holds) overlaps() {
	held := make(map[string][]*lease)
	for _, l := range x.all {
		if l.granted >= l.end {
			continue
		}
		var still []*lease
		for _, older := range held[l.key] {
			if older.end <= l.granted {
				continue
			}
			still = append(still, older)
			excuse := x.excuseOverlap(older, l)
			if excuse != "" {
				if older.cut == 0 || l.begun() < older.cut {
					older.cut = l.begun()
				}
				// Where both rounds went on at the same time either token may be the larger.
				l.free = l.free || l.token < older.token && l.begun() <= older.granted
			}
			text := fmt.Sprintf("key %s: %s and %s were both live for %s, from %s", l.key, older, l, min(older.end, l.end).Sub(l.granted), l.granted)
			if excuse == "" {
				x.add(Overlap, l.granted, "%s", text)
			} else {
				x.excuse("%s: %s", text, excuse)
			}
		}
		held[l.key] = append(still, l)
	}
}

// excuseOverlap tells whether the guarantee does not cover that both leases were live. It does not
// if a server let keys expire early because its clock jumped forward, after the older lease's keys
// were last set (the start of the last round known to have set them that had begun when the newer
// lease was granted) and before the newer lease was granted. A server that was restarted without
// its data is no excuse: the restart gate is there for it.
func (x *holds) excuseOverlap(older, newer *lease) string {
	for _, s := range x.steps {
		if s.by > 0 && s.to >= older.renewed(newer.granted) && s.from <= newer.granted {
			return fmt.Sprintf("the clock of server %d jumped forward by %s after the older lease's keys were last set", s.server+1, s.by)
		}
	}
	return ""
}

// strangers finds what a process was granted that has another list of nodes than all others.
func (x *holds) strangers() {
	for _, l := range x.all {
		if l.way == history.OtherList {
			x.add(Admitted, l.granted, "key %s: %s was granted to a process with another list of nodes", l.key, l)
		}
	}
}

// expiries finds times in which certificates had expired, and nobody was granted anything who had
// its connections. No client is struck then.
func (x *holds) expiries() {
	const within = 3 * time.Second
	began := make(map[string]history.Instant)
	for _, life := range x.Lives {
		began[life.Name] = life.Began
	}
	for _, s := range x.Strikes {
		if s.Kind != plan.Expire || s.Server != 0 || s.Heal.Sub(s.Done) < within+time.Second {
			continue
		}
		if !slices.ContainsFunc(x.all, func(l *lease) bool {
			return l.granted > s.Heal.Add(-within) && l.granted < s.Heal && began[l.life] < s.From
		}) {
			x.add(Unavailable, s.Heal, "nobody was granted a key in the last %s before %s, with certificates that had expired at %s", within, s.Heal, s.From)
		}
	}
}

// operation is a step of a leased, fenced mutex: a lease is acquired, or it is over.
type operation struct {
	lease   string
	token   uint64
	acquire bool
	free    bool // the token's order is excused
}

// mutex is the state of a key.
type mutex struct {
	holder string
	token  uint64 // the largest so far
}

// model is the mutex of a key. It can be acquired when it is free, with a token larger than all
// before, and is free again when its lease is over. A lease is over at the one instant that was
// found for it, whether it was released or not.
var model = porcupine.Model{
	Init: func() any { return mutex{} },
	Step: func(state, input, _ any) (bool, any) {
		m, o := state.(mutex), input.(operation)
		switch {
		case !o.acquire:
			return m.holder == o.lease, mutex{token: m.token}
		case m.holder != "" || o.token <= m.token && !o.free:
			return false, m
		default:
			return true, mutex{holder: o.lease, token: max(m.token, o.token)}
		}
	},
}

// linearize asks porcupine whether the leases of a key are those of a mutex. What an excused
// overlap took away is over when the round began that took it.
func (x *holds) linearize(key string, leases []*lease) {
	var history []porcupine.Operation
	clients := make(map[string]int)
	for _, l := range leases {
		if _, known := clients[l.life]; !known {
			clients[l.life] = len(clients)
		}
		client := clients[l.life]
		end := max(l.end, l.begun())
		over := end
		if l.cut != 0 {
			over = min(end, max(l.cut, l.begun()))
		}
		history = append(history, porcupine.Operation{
			ClientId: client, Input: operation{lease: l.id, token: l.token, acquire: true, free: l.free},
			Call: int64(l.begun()), Return: int64(l.granted),
		}, porcupine.Operation{
			ClientId: client, Input: operation{lease: l.id},
			Call: int64(over), Return: int64(end),
		})
	}
	x.Counts["operations that porcupine ordered"] += len(history)
	switch porcupine.CheckOperationsTimeout(model, history, x.Undecided) {
	case porcupine.Illegal:
		at, why := x.Over, ""
		if l, before := disorder(leases); l != nil {
			at, why = l.granted, fmt.Sprintf(": %s came after %s", l, before)
		}
		x.add(Unlinear, at, "key %s: no order of the %d grants and ends is that of a leased, fenced mutex%s", key, len(history), why)
	case porcupine.Unknown:
		x.add(Undecided, x.Over, "key %s: porcupine did not decide about %d operations within %s", key, len(history), x.Undecided)
	}
}

// disorder finds the first lease whose token is not larger than that of one that had returned when
// its round began.
func disorder(leases []*lease) (l, before *lease) {
	for i, l := range leases {
		for _, before := range leases[:i] {
			if before.granted < l.begun() && before.token >= l.token {
				return l, before
			}
		}
	}
	return nil, nil
}
