package redlock

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A counter is damaged if it is no number below 2^53, or leads its server's clock by more than a
// day (one that leads by less is told of, and followed): something else than this library has
// written it, see lib/counter.lua of wire. A node does not grant a lease on a key whose counter it
// finds damaged, which other keys share, so that no other node follows it, and the quorum is made
// up of others. Quorums of others have a node in common, so tokens rise as ever. A lease that they
// grant puts its token in the place of the damaged counter with its first extension.
//
// The roster is damaged if it is no hash. That costs no vote: package roster tells of what a node
// cannot keep.

// damaged is a key on a node.
type damaged struct {
	key string
	why *ConditionError
	at  clock.Instant
}

// damagedSeen is for how long a damaged key is warned of that is not seen any more.
const damagedSeen = time.Hour

// lookForDamage notes what a reply says of its key, whose counter has that lead. A reply that says
// that it is damaged gets its name.
func (m *member) lookForDamage(call *wire.Call, rep *vote.Reply, lead time.Duration) {
	granted := call.Op.Grants() && rep.Verdict == wire.OK
	if why := wire.FaultOf(rep.Err); why != nil && why.Condition == wire.Damaged {
		rep.Err = m.foundDamaged(call, why)
	}
	if rep.Err == nil && granted {
		m.leads(call, lead)
	}
	if rep.Err == nil && (granted || rep.Extended == wire.Refilled) {
		m.healed(call.Keys)
	}
}

// foundDamaged notes a key that the node has just found damaged, and returns why with the key's
// name. Of a roster package roster tells.
func (m *member) foundDamaged(call *wire.Call, why *wire.Fault) *wire.Fault {
	key := counterName(call.Keys)
	if isRoster(call) || strings.Contains(why.Cause(), "the lock is") {
		key = call.Keys.Lock
	}
	why = &wire.Fault{Condition: wire.Damaged, Detail: fmt.Sprintf("%q: %s", key, why.Cause()), Err: why.Err}
	if !isRoster(call) {
		is := m.q.conditionError(why)
		m.damaged.Store(&damaged{key, is, m.q.clock.Now()})
		m.q.news.is(matter{damagedKey, m, key}, "", call.Keys.Name, "reason", is)
	}
	return why
}

// standing notes a lock of another owner on a node that is there for longer than any lease may
// live: beside a quorum that has granted the key, or in the way of one. Nothing else than a person
// ends that. One that some lease might have is named as such.
func (m *member) standing(keys *wire.Keys, rep *vote.Reply) {
	if rep.Verdict != wire.Refused {
		return
	}
	left := rep.More().PTTL
	if left <= maxMaxTTL {
		holder := newHolder(keys.Name, rep.More().Owner)
		holder.TTL = left
		m.q.checkTTL(holder)
		return
	}
	expires := "has no expiry"
	if left != NoExpiry {
		expires = fmt.Sprintf("expires in %v", left.Round(time.Second))
	}
	m.foundDamaged(&wire.Call{Op: wire.Acquire, Keys: keys}, &wire.Fault{Condition: wire.Damaged, Detail: "the lock is another owner's and " + expires + ", and no lease lives as long"})
}

// leads notes a counter that leads all clocks by more than this library needs, and less than makes
// it damaged, or that it does not any more. Nodes follow it, so that tokens rise. They would go
// back if it were lost.
func (m *member) leads(call *wire.Call, by time.Duration) {
	far, last := by > m.q.clocks.UsualLead(), m.damaged.Load()
	if !far && last == nil {
		return
	}
	switch key := counterName(call.Keys); {
	case far:
		why := &wire.Fault{Condition: wire.Damaged, Detail: fmt.Sprintf("%q: the counter leads all clocks by %v", key, by.Round(time.Second))}
		m.damaged.Store(&damaged{key, m.q.conditionError(why), m.q.clock.Now()})
	case last.key == key:
		m.damaged.CompareAndSwap(last, nil)
	}
}

// isRoster reports whether a call is about who uses the node.
func isRoster(call *wire.Call) bool { return call.Op == wire.Enroll }

// counterName is what the counter of a key is called where it is damaged: the hash and the field.
func counterName(keys *wire.Keys) string { return keys.Fences + " " + keys.Slot }

// healed notes that the node has granted the key, or put it back with its counter.
func (m *member) healed(keys *wire.Keys) {
	for _, key := range []string{counterName(keys), keys.Lock} {
		if !m.q.news.over(matter{damagedKey, m, key}, keys.Name) {
			continue
		}
		if last := m.damaged.Load(); last != nil && last.key == key {
			m.damaged.CompareAndSwap(last, nil)
		}
	}
}

// damageSeen is what was found damaged last, unless that is long ago.
func (m *member) damageSeen() *ConditionError {
	if last := m.damaged.Load(); last != nil && m.q.clock.Now().Sub(last.at) < damagedSeen {
		return last.why
	}
	return nil
}
