package redlock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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
// The list of members is damaged if it is no text. That costs no vote: package membership tells of
// what a node cannot keep.

// damage is what a node has found damaged. It is safe for concurrent use.
type damage struct {
	mu   sync.Mutex
	keys map[string]struct{} // guarded by mu
	some atomic.Bool         // there are keys
	last atomic.Pointer[damaged]
}

// damaged is a key on a node.
type damaged struct {
	key string
	why *ConditionError
	at  clock.Instant
}

const (
	maxDamaged  = 64        // keys of a node, each of which is logged
	damagedSeen = time.Hour // for how long news of a key are news
)

// look notes what a reply says of its key, whose counter has that lead. A reply that says that it
// is damaged gets its name.
func (d *damage) look(m *member, call *wire.Call, rep *vote.Reply, lead time.Duration) {
	if rep.Err == nil {
		if call.Op.Grants() && rep.Verdict == wire.OK {
			d.leads(m, call, lead)
		}
		if d.some.Load() && (call.Op.Grants() && rep.Verdict == wire.OK || rep.Extended == wire.Refilled) {
			d.healed(m, call)
		}
		return
	}
	if why := wire.FaultOf(rep.Err); why != nil && why.Condition == wire.Damaged {
		rep.Err = d.found(m, call, why)
	}
}

// found notes a key that the node has just found damaged, and returns why with the key's name. It
// logs the first of each. Of a list of members package membership tells.
func (d *damage) found(m *member, call *wire.Call, why *wire.Fault) *wire.Fault {
	key := counterName(call.Keys)
	if isList(call) || strings.Contains(why.Cause(), "the lock is") {
		key = call.Keys.Lock
	}
	why = &wire.Fault{Condition: wire.Damaged, Detail: fmt.Sprintf("%q: %s", key, why.Cause()), Err: why.Err}
	if isList(call) {
		return why
	}
	is := m.q.conditionError(why)
	if d.add(&damaged{key, is, m.q.clock.Now()}) {
		m.q.lines.foreign(call.Keys.Name, func() {
			m.q.cfg.logger.WarnContext(context.Background(), "redlock: node does not vote for a key", "node", m.addr, "key", call.Keys.Name, "reason", is)
		})
	}
	return why
}

// add keeps what was found, and reports whether it is news.
func (d *damage) add(is *damaged) (news bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last.Store(is)
	_, known := d.keys[is.key]
	if news = !known && len(d.keys) < maxDamaged; !news {
		return false
	}
	if d.keys == nil {
		d.keys = make(map[string]struct{})
	}
	d.keys[is.key] = struct{}{}
	d.some.Store(true)
	return true
}

// standing notes a lock of another owner on a node that is there for longer than any lease may
// live, beside a quorum that has granted the key. Nothing else than a person ends that. One that
// some lease might have is named as such.
func (d *damage) standing(m *member, keys *wire.Keys, rep *vote.Reply) {
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
	d.found(m, &wire.Call{Op: wire.Acquire, Keys: keys}, &wire.Fault{Condition: wire.Damaged, Detail: "the lock is another owner's and " + expires + ", and no lease lives as long"})
}

// leads notes a counter that leads all clocks by more than this library needs, and less than makes
// it damaged, or that it does not any more. Nodes follow it, so that tokens rise. They would go
// back if it were lost.
func (d *damage) leads(m *member, call *wire.Call, by time.Duration) {
	far, last := by > m.q.clocks.UsualLead(), d.last.Load()
	if !far && last == nil {
		return
	}
	switch key := counterName(call.Keys); {
	case far:
		why := &wire.Fault{Condition: wire.Damaged, Detail: fmt.Sprintf("%q: the counter leads all clocks by %v", key, by.Round(time.Second))}
		d.last.Store(&damaged{key, m.q.conditionError(why), m.q.clock.Now()})
	case last.key == key:
		d.last.CompareAndSwap(last, nil)
	}
}

// isList reports whether a call is about the list of members.
func isList(call *wire.Call) bool { return call.Op == wire.Belong }

// counterName is what the counter of a key is called where it is damaged: the hash and the field.
func counterName(keys *wire.Keys) string { return keys.Fences + " " + keys.Slot }

// healed notes that the node has granted the key, or put it back with its counter.
func (d *damage) healed(m *member, call *wire.Call) {
	if d.remove(counterName(call.Keys), call.Keys.Lock) {
		m.q.lines.foreign(call.Keys.Name, func() {
			m.q.cfg.logger.InfoContext(context.Background(), "redlock: node votes for a key again", "node", m.addr, "key", call.Keys.Name)
		})
	}
}

// remove forgets what is not damaged any more, and reports whether there was any of it.
func (d *damage) remove(keys ...string) (any bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		if _, known := d.keys[key]; !known {
			continue
		}
		any = true
		delete(d.keys, key)
		if last := d.last.Load(); last != nil && last.key == key {
			d.last.Store(nil)
		}
	}
	d.some.Store(len(d.keys) > 0)
	return any
}

// warning is what was found last, unless that is long ago.
func (d *damage) warning(now clock.Instant) *ConditionError {
	if last := d.last.Load(); last != nil && now.Sub(last.at) < damagedSeen {
		return last.why
	}
	return nil
}
