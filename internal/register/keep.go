package register

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock"
)

// Keep has the registers restored on each node that has forgotten them: as soon as it votes again
// after a restart, within a tenth of the TTL, and when this Quorum first sees it. Without it a node
// is restored when a register is next begun, and nodes that are restarted one after the other in
// between forget it together: keep registers that may rest for longer than it takes to restart two
// nodes. It costs a read of each register on each node that begins to vote.
//
// It returns at once and does no I/O by itself. A Quorum has one goroutine for all that it keeps. A
// register is kept until the ctx of each Keep of it has ended, or the Quorum was closed. One that
// cannot be one is not kept, and with WithoutRestartGate none is.
//
// It is not promised for a node that loses its data while it runs (FLUSHALL), which is noticed when
// the register is next begun, nor when fewer than a quorum of nodes can be asked at that time.
func Keep(ctx context.Context, q *redlock.Quorum, registers ...Register) {
	b := bridge.Of(q)
	if b == nil || !b.RestartGate() {
		return
	}
	k := keeperOf(q, b)
	registers = slices.DeleteFunc(slices.Clone(registers), func(r Register) bool {
		_, err := r.name(b)
		return err != nil || r.q != q
	})
	k.add(registers, 1)
	context.AfterFunc(ctx, func() { k.add(registers, -1) })
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

type keeperKey struct{}

// keeperOf is that of a Quorum, which it begins with the first call.
func keeperOf(q *redlock.Quorum, b bridge.Quorum) *keeper {
	k := b.Extra(keeperKey{}, func() any {
		return &keeper{q: b, closed: q.Closed(), wake: make(chan struct{}, 1), kept: make(map[Register]*kept)}
	}).(*keeper)
	k.begins.Do(func() { b.Background(k.run) })
	return k
}

// keeper restores registers on nodes whose gates open.
type keeper struct {
	q      bridge.Quorum
	closed <-chan struct{}
	wake   chan struct{} // capacity 1
	begins sync.Once     // run

	mu   sync.Mutex
	kept map[Register]*kept // guarded by mu
}

// kept is a register that is kept.
type kept struct {
	callers int      // of Keep
	known   []uint64 // by each node since its gate opened so often; 0 for never
}

func (k *keeper) add(registers []Register, callers int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range registers {
		s := k.kept[r]
		if s == nil {
			s = &kept{known: make([]uint64, k.q.Nodes())}
			k.kept[r] = s
		}
		if s.callers += callers; s.callers == 0 {
			delete(k.kept, r)
		}
	}
}

// run restores what is kept until the Quorum is closed.
func (k *keeper) run() {
	var pause time.Duration // after a try that has not settled all
	for {
		opened, more := k.q.Gates()
		var again <-chan time.Time
		if some, _ := k.unsettled(opened); len(some) > 0 {
			again = time.After(pause + rand.N(k.q.TTL()/10)) // others have seen the same, and one is enough
		}
		select {
		case <-k.closed:
			return
		case <-again:
			k.restore(context.Background(), opened)
			pause = min(max(2*pause, firstPause), k.q.TTL())
		case <-more:
			pause = 0
		case <-k.wake:
			pause = 0
		}
	}
}

// unsettled are the registers that are not known to be known by all nodes whose gates are open, and
// these nodes.
func (k *keeper) unsettled(opened []uint64) (some []Register, nodes []bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	nodes = make([]bool, len(opened))
	for r, s := range k.kept {
		settled := true
		for node, n := range opened {
			if n != 0 && s.known[node] != n {
				settled, nodes[node] = false, true
			}
		}
		if !settled {
			some = append(some, r)
		}
	}
	return some, nodes
}

// restore asks the nodes whose gates have opened for what is not settled. What one of them does not
// know is read from all, and only then.
func (k *keeper) restore(ctx context.Context, opened []uint64) {
	all, nodes := k.unsettled(opened)
	for some := range slices.Chunk(all, mostTogether) {
		some = k.read(some, opened, func(rd *reading) error {
			return rd.ask(ctx, len(rd.registers), func(node int) bool { return nodes[node] })
		})
		k.read(some, opened, func(rd *reading) error { return rd.read(ctx) })
	}
}

// read reads registers, notes which nodes know them, or that there is nothing to know, and returns
// those that some node does not know.
func (k *keeper) read(some []Register, opened []uint64, how func(*reading) error) (left []Register) {
	if len(some) == 0 {
		return nil
	}
	rd, err := newReading(some)
	if err == nil {
		rd.keeps, rd.only = true, false // who keeps takes part
		err = how(rd)
	}
	if err != nil {
		return nil // closed
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, r := range some {
		s := k.kept[r]
		for node := range rd.views[i] {
			if s != nil && rd.views[i][node].says == knows {
				s.known[node] = opened[node]
			}
		}
		if count(rd.views[i], "u") > 0 {
			left = append(left, r)
		}
	}
	return left
}
