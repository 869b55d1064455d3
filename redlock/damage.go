package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A counter is damaged if it is no number below 2^53, or leads its server's clock by more than a
// day: something else than this library has written it, see lib/counter.lua of wire. A node does
// not grant a lease on a key whose counter it finds damaged, so that no other node follows it, and
// the quorum is made up of others. Quorums of others have a node in common, so tokens rise as ever.
// A lease that they grant puts its token in the place of the damaged counter with its first
// extension.

// maxLead is by how much a counter may lead its server's clock.
const maxLead = 24 * time.Hour

// damage is what a node has found damaged. Apart from last it belongs to the node's run goroutine.
type damage struct {
	keys map[string]struct{}
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

// lookForDamage notes what an answer says of its key's counter, and returns the answer's error,
// with the key's name if it is that.
func (n *node) lookForDamage(r *request, rep reply, err error) error {
	if err == nil && rep.Token > n.q.clocks.greatestCounter(rep) { //mutant:invented-lead-followed
		err = wire.DamagedCounter(strconv.FormatUint(rep.Token, 10))
	}
	var known *ConditionError
	switch {
	case err == nil:
		if len(n.damage.keys) > 0 && (r.call.Op == wire.Acquire && rep.Verdict == wire.OK || rep.Extended == wire.Refilled) {
			n.healed(r)
		}
	case errors.As(diagnose(err), &known) && known.Condition == ConditionDamaged:
		return n.foundDamaged(r, known)
	}
	return err
}

// foundDamaged notes a key that the node has just found damaged, and returns why with the key's
// name. It logs the first of each.
func (n *node) foundDamaged(r *request, why *ConditionError) *ConditionError {
	key := r.call.Keys.Fence
	if strings.Contains(why.cause(), "the lock is") { //mutant:foreign-lock-named-counter
		key = r.call.Keys.Lock
	}
	why = &ConditionError{Condition: ConditionDamaged, Detail: fmt.Sprintf("%q: %s", key, why.cause()), Err: why.Err}
	d := &n.damage
	if _, known := d.keys[key]; !known && len(d.keys) < maxDamaged { //mutant:damaged-counter-unsaid
		if d.keys == nil {
			d.keys = make(map[string]struct{})
		}
		d.keys[key] = struct{}{}
		n.q.cfg.logger.WarnContext(context.Background(), "redlock: node does not vote for a key", "node", n.addr, "key", r.call.Keys.Name, "reason", why)
	}
	d.last.Store(&damaged{key, why, n.q.clock.Now()})
	return why
}

// healed notes that the node has granted the key, or put it back with its counter.
func (n *node) healed(r *request) {
	d := &n.damage
	any := false
	for _, key := range []string{r.call.Keys.Fence, r.call.Keys.Lock} {
		if _, known := d.keys[key]; !known {
			continue
		}
		any = true
		delete(d.keys, key)
		if last := d.last.Load(); last != nil && last.key == key {
			d.last.Store(nil)
		}
	}
	if !any {
		return
	}
	n.q.cfg.logger.InfoContext(context.Background(), "redlock: node votes for a key again", "node", n.addr, "key", r.call.Keys.Name)
}

// warning is what was found last, unless that is long ago.
func (d *damage) warning(now clock.Instant) *ConditionError {
	if last := d.last.Load(); last != nil && now.Sub(last.at) < damagedSeen {
		return last.why
	}
	return nil
}
