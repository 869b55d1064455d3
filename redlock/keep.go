package redlock

import (
	"context"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// KeepSequence has this Quorum restore how far the key's sequence (WithSequence) has come, on each
// node that has forgotten it: as soon as the node votes again after a restart, within a tenth of
// the TTL, and when this Quorum first sees it. Without it a node is restored when the next number
// is asked for, and nodes that are restarted one after the other in between forget it together: use
// it for sequences that may rest for longer than it takes to restart two nodes. It costs a read of
// each kept key on each node that begins to vote.
//
// It returns at once and does no I/O by itself. Each call is to be ended with stop, or with Close;
// the key is kept while there is one that is not. It is safe for concurrent use. A key that cannot
// be one is not kept, and with WithoutRestartGate none is.
//
// It is not promised for a node that loses its data while it runs (FLUSHALL), which is noticed when
// the next number is asked for, nor when fewer than a quorum of nodes can be asked at that time,
// see docs/guarantees.md.
func (q *Quorum) KeepSequence(key string) (stop func()) {
	if q.none() {
		return func() {}
	}
	keys, err := q.cfg.keys(key)
	if err != nil || !q.cfg.restartGate {
		return func() {}
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return func() {}
	}
	if !q.keeper.runs {
		q.keeper.runs = true
		q.work.Go(q.keeper.run)
	}
	q.mu.Unlock()
	own, all := q.keeper.keep(&keys), q.keeper.keep(&q.all)
	return func() {
		own()
		all()
	}
}

// keeper restores kept sequences on nodes whose gates open.
type keeper struct {
	q    *Quorum
	runs bool          // guarded by q.mu
	wake chan struct{} // capacity 1

	mu     sync.Mutex
	kept   map[string]*kept // guarded by mu
	opened []uint64         // guarded by mu; how often the gate of each node has opened
}

// kept is a sequence that is kept.
type kept struct {
	keys    *wire.Keys
	callers int      // of KeepSequence
	known   []uint64 // by each node since its gate opened so often; 0 for never
}

func newKeeper(q *Quorum, nodes int) *keeper {
	return &keeper{q: q, wake: make(chan struct{}, 1), kept: make(map[string]*kept), opened: make([]uint64, nodes)}
}

func (k *keeper) keep(keys *wire.Keys) (stop func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept[keys.Lock] == nil {
		k.kept[keys.Lock] = &kept{keys: keys, known: make([]uint64, len(k.opened))}
		k.signal()
	}
	k.kept[keys.Lock].callers++
	return sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if s := k.kept[keys.Lock]; s.callers == 1 {
			delete(k.kept, keys.Lock)
		} else {
			s.callers--
		}
	})
}

// open is called when a node's gate has opened for a process.
func (k *keeper) open(node int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opened[node]++
	k.signal()
}

func (k *keeper) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run restores what is kept until the Quorum is closed.
func (k *keeper) run() {
	var pause time.Duration // before another try
	retry := time.NewTimer(clock.AtOnce)
	defer retry.Stop()
	for {
		select {
		case <-k.q.done:
			return
		case <-k.wake:
			pause = 0
		case <-retry.C:
		}
		// Others have seen the same, and one is enough.
		spread := time.NewTimer(max(fullJitter(k.q.cfg.lease.ttl/10), clock.AtOnce))
		select {
		case <-k.q.done:
			spread.Stop()
			return
		case <-spread.C:
		}
		if !k.restore() {
			pause = min(max(2*pause, node.MaxPause), k.q.cfg.sampleEvery())
			retry.Reset(pause)
		}
	}
}

// restore restores what is kept on the nodes that do not know it, as far as their gates have opened
// since that was last found out. It reports whether all that are open know all.
func (k *keeper) restore() bool {
	ctx := context.Background()
	opened, asked := k.unsettled()
	rounds := make([]*operation, len(asked))
	deadline := k.q.clock.Now().Add(k.q.cfg.timeout(k.q.cfg.lease.ttl))
	everybody := len(k.q.nodes) + 1 // are never enough, so that all are heard
	for i, s := range asked {
		rounds[i] = k.q.recall(ctx, s.keys, everybody, func(node int) bool { return opened[node] != s.known[node] })
	}
	var all []*restoration
	for i, s := range asked {
		_ = rounds[i].Wait(ctx, max(deadline.Sub(k.q.clock.Now()), clock.AtOnce), &k.q.waits)
		replies := rounds[i].Outcome().Replies
		k.settle(s.keys, opened, func(node int) bool { return replies[node].Verdict == wire.OK })
		if nodes := unknowingIn(replies, ofKey); len(nodes) > 0 {
			all = append(all, &restoration{keys: s.keys, nodes: nodes})
		}
	}
	if len(all) > 0 {
		k.q.restore(ctx, all...)
	}
	for _, r := range all {
		k.settle(r.keys, opened, r.done)
	}
	_, left := k.unsettled()
	return len(left) == 0
}

// unsettled returns how often gates have opened, and copies of the sequences that are not known to
// be known since by all that are open.
func (k *keeper) unsettled() (opened []uint64, some []kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	opened = append(opened, k.opened...)
	for i, n := range k.q.nodes {
		if n.Status().Reason() != nil {
			opened[i] = 0 // it will open again
		}
	}
	for _, s := range k.kept {
		copied := kept{keys: s.keys, known: append([]uint64(nil), s.known...)}
		for i := range opened {
			if opened[i] == 0 {
				copied.known[i] = 0
			}
		}
		for i := range opened {
			if opened[i] != copied.known[i] {
				some = append(some, copied)
				break
			}
		}
	}
	return opened, some
}

// settle notes that nodes know a sequence.
func (k *keeper) settle(keys *wire.Keys, opened []uint64, knows func(node int) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.kept[keys.Lock]
	if s == nil {
		return
	}
	for i := range opened {
		if opened[i] != 0 && knows(i) {
			s.known[i] = opened[i]
		}
	}
}
