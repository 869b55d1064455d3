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

// lease is one acquisition of a key by a client and, once it was granted, the lease.
type lease struct {
	id, life, key string
	way           string // of the acquisition: "wait", "try", "probe" or history.OtherList
	token         uint64
	ttl           time.Duration
	asked         history.Instant
	granted       history.Instant // when Acquire had returned
	end           history.Instant // when it ended for its holder: the first of release, deadline, loss and death
	endedBy       string

	starts []history.Instant // of the rounds known to have set its keys, ascending; not empty once it was granted
	cut    history.Instant   // start of the round that took its keys in an excused overlap; zero if there was none
	free   bool              // its token may be smaller than an earlier one
}

// begun returns the start of the round that acquired the lease.
func (l *lease) begun() history.Instant { return l.starts[0] }

// renewed returns the start of the last round that had begun by that instant and is known to have
// set the keys: the first round if no later one had begun.
func (l *lease) renewed(by history.Instant) history.Instant {
	later, _ := slices.BinarySearch(l.starts, by+1)
	return l.starts[max(later-1, 0)]
}

// ended notes an end of the lease; the earliest one counts.
func (l *lease) ended(at history.Instant, by string) {
	if l.end == 0 || at < l.end {
		l.end, l.endedBy = at, by
	}
}

func (l *lease) String() string {
	return fmt.Sprintf("%s (token %d, live %s to %s, ended by %s)", l.id, l.token, l.granted, l.end, l.endedBy)
}

// holds are the leases of a history, in the order of their grants.
type holds struct {
	*Verdict
	all   []*lease
	lives map[string]history.Life
}

func (v *Verdict) checkLeases() {
	x := &holds{Verdict: v, lives: make(map[string]history.Life)}
	for _, life := range v.Lives {
		x.lives[life.Name] = life
	}
	for _, life := range slices.Sorted(maps.Keys(v.Records)) {
		x.read(life, v.Records[life])
	}
	slices.SortFunc(x.all, func(a, b *lease) int { return cmp.Or(cmp.Compare(a.granted, b.granted), cmp.Compare(a.id, b.id)) })
	x.overlaps()
	x.expiries()
	byKey := make(map[string][]*lease)
	for _, l := range x.all {
		byKey[l.key] = append(byKey[l.key], l)
		if l.way == history.OtherList {
			x.add(Admitted, l.granted, "key %s: %s was granted to a process with another list of nodes", l.key, l)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		x.linearize(key, byKey[key])
	}
}

// driftFloor is the fixed part of redlock's allowance for drift, see redlock.WithDrift.
const driftFloor = 2 * time.Millisecond

// validity returns for how long after the start of its round a lease of that TTL may be relied on:
// the TTL without redlock's allowance for clocks that run at different rates (WithDrift).
func (x *holds) validity(ttl time.Duration) time.Duration {
	return ttl - time.Duration(float64(ttl)*redlock.DefaultDrift) - driftFloor
}

// read builds the leases of one journal. A lease that the journal leaves open ends at its deadline
// or with its process, whichever comes first.
func (x *holds) read(life string, records []history.Record) {
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
			with := map[string]string{history.OtherList: " with another list"}[l.way]
			x.Counts["acquisitions"+with+" that failed: "+r.Text]++
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
	death := x.lives[life].Killed
	if death == 0 && len(records) > 0 {
		death = records[len(records)-1].At
	}
	for _, l := range x.all[granted:] {
		l.ended(l.starts[len(l.starts)-1].Add(x.validity(l.ttl)), "deadline")
		l.ended(death, "death")
	}
}

// extend notes the round that set a deadline of the lease.
func (x *holds) extend(l *lease, deadline history.Instant) {
	const moved = time.Millisecond // a deadline from another round is later by more than this
	start := deadline.Add(-x.validity(l.ttl))
	if n := len(l.starts); n == 0 || start > l.starts[n-1].Add(moved) {
		l.starts = append(l.starts, start)
	}
}

// outlived checks an answer of Err that was nil. It must not come after the deadline of the lease,
// which was read after the answer, nor after the loss or release of the lease.
func (x *holds) outlived(l *lease, valid history.Record) {
	// tolerance is the most by which the library's clock may differ from the journal's:
	// clock.Tolerance is 1 ms, and the rest is for reading two clocks one after the other.
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
				// If both rounds went on at the same time, either token may be the larger.
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

// excuseOverlap returns why the guarantee does not cover that both leases were live, or "" if it
// does. The only excuse is a server whose clock jumped forward, so that it let keys expire early.
// The jump must have come after the older lease's keys were last set and before the newer lease was
// granted. The keys were last set at the start of the last round that is known to have set them and
// had begun when the newer lease was granted. A server that was restarted without its data is no
// excuse: the restart gate covers it.
func (x *holds) excuseOverlap(older, newer *lease) string {
	for _, s := range x.Strikes {
		from, to := s.From, s.Done
		if s.Jump < 0 { // the clock is put right forward
			from, to = s.Heal, s.To
		}
		if s.Jump != 0 && to >= older.renewed(newer.granted) && from <= newer.granted {
			return fmt.Sprintf("the clock of server %d jumped forward by %s after the older lease's keys were last set", s.Server+1, s.Jump.Abs())
		}
	}
	return ""
}

// expiries finds faults of expired certificates in which clients that were connected before were
// not served: none of them was granted a lease shortly before the end of the fault. No client is
// struck meanwhile.
func (x *holds) expiries() {
	const within = 3 * time.Second
	for _, s := range x.Strikes {
		if s.Kind != plan.Expire || s.Server != 0 || s.Heal.Sub(s.Done) < within+time.Second {
			continue
		}
		if !slices.ContainsFunc(x.all, func(l *lease) bool {
			return l.granted > s.Heal.Add(-within) && l.granted < s.Heal && x.lives[l.life].Began < s.From
		}) {
			x.add(Unavailable, s.Heal, "nobody was granted a key in the last %s before %s, with certificates that had expired at %s", within, s.Heal, s.From)
		}
	}
}

// operation is a step of a leased, fenced mutex: a lease is acquired or ends.
type operation struct {
	lease   string
	token   uint64
	acquire bool
	free    bool // the token may be smaller than an earlier one
}

// mutex is the state of a key.
type mutex struct {
	holder string
	token  uint64 // the largest so far
}

// model is the mutex of a key. A lease acquires the mutex while it is free, with a token larger
// than all before. The mutex is free again when the lease ends, at the one instant that was found
// for its end, whether it was released or not.
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

// linearize asks porcupine whether the leases of a key are those of a mutex. If an excused overlap
// took the keys of a lease, the lease may have ended as soon as the round that took them began.
func (x *holds) linearize(key string, leases []*lease) {
	var history []porcupine.Operation
	for _, l := range leases {
		end := max(l.end, l.begun())
		over := end
		if l.cut != 0 {
			over = min(end, max(l.cut, l.begun()))
		}
		history = append(history, porcupine.Operation{
			Input: operation{lease: l.id, token: l.token, acquire: true, free: l.free}, Call: int64(l.begun()), Return: int64(l.granted),
		}, porcupine.Operation{Input: operation{lease: l.id}, Call: int64(over), Return: int64(end)})
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

// disorder finds the first lease whose token is not larger than the token of a lease that had been
// granted when its round began. It returns both leases, or nil if there are none.
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
