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

// Keep restores the registers on each node that has forgotten them. It does so within a tenth of
// the TTL after the node votes again, or after this Quorum first sees it vote. Without Keep a node
// is restored only when a register is next begun, and nodes that are restarted one after the other
// before that forget it together. So keep each register that may rest for longer than it takes to
// restart two nodes. Keep costs a read of each register on each node that begins to vote.
//
// It returns at once and does no I/O itself: one goroutine a Quorum restores all that is kept. A
// register is kept until the ctx of each Keep of it has ended, or the Quorum is closed. A register
// with an invalid key or duration is not kept, and none is with WithoutRestartGate.
//
// Not promised: a node that loses its data while it runs (FLUSHALL), which is noticed when the
// register is next begun; and a restart during which fewer than a quorum of nodes can be asked.
func Keep(ctx context.Context, q *redlock.Quorum, registers ...Register) {
	b := bridge.Of(q)
	if b == nil || !b.RestartGate() {
		return
	}
	k := b.Extra(keeperKey{}, func() any {
		return &keeper{q: b, closed: q.Closed(), wake: make(chan struct{}, 1), kept: make(map[Register]*kept)}
	}).(*keeper)
	k.begins.Do(func() { b.Background(k.run) })
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

// keeper restores registers on nodes whose gates open.
type keeper struct {
	q      bridge.Quorum
	closed <-chan struct{}
	wake   chan struct{} // capacity 1
	begins sync.Once     // guards the start of run

	mu   sync.Mutex
	kept map[Register]*kept // guarded by mu
}

// kept is the state of one register that is kept.
type kept struct {
	callers int      // calls of Keep whose ctx has not ended
	known   []uint64 // by node: at which opening of its gate it knew the register; 0 for none
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

// run restores the kept registers until the Quorum is closed.
func (k *keeper) run() {
	var pause time.Duration // after a try that left registers unsettled
	for {
		opened, more := k.q.Gates()
		var again <-chan time.Time
		if some, _ := k.unsettled(opened); len(some) > 0 {
			again = time.After(pause + rand.N(k.q.TTL()/10)) // one of the processes is enough
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

// unsettled returns the registers that some node with an open gate is not yet known to know, and
// marks those nodes.
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

// restore reads the unsettled registers from the unsettled nodes. Only a register that one of these
// does not know is then read from all nodes, which restores it.
func (k *keeper) restore(ctx context.Context, opened []uint64) {
	all, nodes := k.unsettled(opened)
	for some := range slices.Chunk(all, mostTogether) {
		some = k.read(some, opened, func(rd *reading) error {
			return rd.ask(ctx, len(rd.registers), func(node int) bool { return nodes[node] })
		})
		k.read(some, opened, func(rd *reading) error { return rd.read(ctx) })
	}
}

// read reads registers, and notes the nodes that know them; a register that was never written
// counts as known. It returns the registers that some node does not know.
func (k *keeper) read(some []Register, opened []uint64, how func(*reading) error) (left []Register) {
	if len(some) == 0 {
		return nil
	}
	rd, err := newReading(some)
	if err == nil {
		rd.keeps, rd.only = true, false // a process that keeps registers takes part
		err = how(rd)
	}
	if err != nil {
		return nil // the Quorum is closed
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
