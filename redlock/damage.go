package redlock

import (
	"fmt"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A counter is damaged if it leads the clocks by more than a day, or if something else than a
// sorted set is in the place of all counters: something else than this library has written it. A
// counter that leads by less is reported, and followed. Without a sorted set the node does not
// vote, see lib/trial.lua of wire.
//
// Many keys share a counter. A grant does not count on a node where the counter of the key is
// damaged, so that no other node follows that counter, and other nodes make up the quorum. Quorums
// of other nodes have a node in common, so tokens rise as ever. A person removes the counter.
//
// The roster is damaged if it is no hash. That costs no vote: package roster reports what a node
// cannot keep.

// damaged is a key or a counter on a node that is damaged.
type damaged struct {
	key string
	why *ConditionError
	at  clock.Instant
}

// damagedSeen is for how long a damaged key is warned of after it was last seen.
const damagedSeen = time.Hour

// lookForDamage notes what a reply says of damage to its key. lead is how far the key's counter
// leads all clocks. A reply that reports damage gets the name of the damaged key.
func (m *member) lookForDamage(call *wire.Call, rep *vote.Reply, lead time.Duration) {
	granted := call.Op.Grants() && rep.Verdict == wire.OK
	if why := wire.FaultOf(rep.Err); why.IsAny(wire.Damaged) && !rep.Unsent {
		rep.Err = m.foundDamaged(call, why)
	}
	if rep.Err == nil && granted {
		m.leads(call, lead)
		m.healed(call.Keys, counterName(call.Keys))
		m.healed(call.Keys, call.Keys.Fences)
	}
	if rep.Err == nil && (granted || rep.Extended == wire.Refilled) {
		m.healed(call.Keys, call.Keys.Lock)
	}
}

// foundDamaged notes a key that the node has just found damaged, and returns the fault with the
// key's name. It does not report a damaged roster: package roster does.
func (m *member) foundDamaged(call *wire.Call, why *wire.Fault) *wire.Fault {
	key, cause := counterName(call.Keys), why.Cause()
	if isRoster(call) || strings.Contains(cause, "the lock is") {
		key = call.Keys.Lock
	} else if strings.HasPrefix(cause, "WRONGTYPE") {
		key, cause = call.Keys.Fences, "it is no sorted set"
	}
	why = &wire.Fault{Condition: wire.Damaged, Detail: fmt.Sprintf("%q: %s", key, cause), Err: why.Err}
	if !isRoster(call) {
		is := m.q.conditionError(why)
		m.damaged.Store(&damaged{key, is, m.q.clock.Now()})
		m.q.news.is(matter{damagedKey, m, key}, "", call.Keys.Name, "reason", is)
	}
	return why
}

// standing notes a lock of another owner that lives longer than any lease may: beside a quorum that
// has granted the key, or in the way of one. Only a person can end that. A lock that may be a
// lease's is passed to checkTTL.
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

// leads notes that a counter leads all clocks by more than this library needs and less than makes
// it damaged, or that it does not any more. Nodes follow such a counter, so that tokens rise.
// Tokens would go back if the counter were lost.
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

// isRoster reports whether a call is for the roster of a node, and not for the trial alone.
func isRoster(call *wire.Call) bool { return call.Op == wire.Enroll && call.Roster != nil }

// counterName is the name of a key's counter in reports of damage: the set and the member.
func counterName(keys *wire.Keys) string { return keys.Fences + " " + keys.Slot }

// healed notes that the damage to a counter, to all of them or to a lock is over: the node has
// granted its key, or put that back.
func (m *member) healed(keys *wire.Keys, key string) {
	if !m.q.news.over(matter{damagedKey, m, key}, keys.Name) {
		return
	}
	if last := m.damaged.Load(); last != nil && last.key == key {
		m.damaged.CompareAndSwap(last, nil)
	}
}
