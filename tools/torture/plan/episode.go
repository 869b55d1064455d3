package plan

import (
	"fmt"
	"slices"
	"time"
)

// An episode strikes a quorum. It begins when every server is well and ends when all are well
// again; clients are struck meanwhile as always.
func (p *attack) episode() {
	clients := p.now
	order := p.Perm(p.Servers)
	victims, others := order[:p.Servers/2+1], order[p.Servers/2+1:]
	// The first two are those that a lock which is broken in the usual way does not survive.
	n := p.IntN(5)
	if p.episodes < 2 {
		n = p.episodes
	}
	p.episodes++
	switch n {
	case 0, 2:
		p.forget(victims, others)
	case 1:
		p.divide(victims)
	case 3:
		p.roll(victims)
	default:
		p.lose(victims)
	}
	p.now = slices.Max(p.busy)
	for clients += p.between(0, time.Second); clients < p.now; clients += p.between(200*time.Millisecond, 2*time.Second) {
		p.kill(p.weighted(clientFaults), clients)
	}
}

func (p *attack) part(name string) string { return fmt.Sprintf("%s at %s", name, p.now) }

// lose takes a quorum away: nobody can hold anything for a while.
func (p *attack) lose(victims []int) {
	part := p.part("quorum lost")
	kinds := []Kind{FreezeServer, BlackHole, Cut, DropReplies, DropRequests}
	for _, n := range victims {
		p.harm(kinds[p.IntN(len(kinds))], n, p.now+p.between(0, 100*time.Millisecond), false, part)
	}
}

// divide cuts one side of the clients off from a quorum, while the other reaches all.
func (p *attack) divide(victims []int) {
	kinds := []Kind{BlackHole, Cut, DropReplies, DropRequests}
	f := Fault{
		At: p.now, For: p.between(p.TTL/2, 3*p.TTL), Part: p.part("division"),
		Kind: kinds[p.IntN(len(kinds))], Servers: victims, Side: Left + Side(p.IntN(2)),
	}
	for _, n := range victims {
		p.busy[n] = f.At + f.For
	}
	p.faults = append(p.faults, f)
}

// roll restarts a quorum without its data, one server after the other, as in a rolling deploy of
// servers without persistence: each when the one before it knows again what the others remember.
func (p *attack) roll(victims []int) {
	const restored = 2 * time.Second
	part, at := p.part("one after the other"), p.now
	for _, n := range victims {
		p.faults = append(p.faults, Fault{Kind: RestartEmpty, Servers: []int{n}, At: at, Part: part})
		at += p.Recovery + restored
		p.busy[n] = at
	}
}

// forget restarts a quorum without its data, one server soon after the other: if they voted at
// once, a second client would get a lease that lives. A holder that is well puts its key back soon;
// one that is cut off from these servers, or frozen, does not. Mostly the other servers are cut off
// when these vote again, so that nobody who votes remembers a fencing counter.
func (p *attack) forget(victims, others []int) {
	part := p.part("quorum forgets")
	at, apart := p.now, time.Duration(p.IntN(2))*150*time.Millisecond
	switch n := p.IntN(4); {
	case n == 0 && p.episodes > 1:
	case n == 1 && p.episodes > 1:
		for key := range p.Keys {
			if p.key[key] <= at {
				p.key[key] = at + p.TTL
				p.faults = append(p.faults, Fault{Kind: FreezeHolder, At: at, For: p.TTL, Key: key, Part: part})
			}
		}
	default:
		kinds := []Kind{BlackHole, Cut, DropReplies, DropRequests}
		p.faults = append(p.faults, Fault{
			At: at, For: p.TTL, Part: part,
			Kind: kinds[p.IntN(len(kinds))], Servers: victims, Side: Left + Side(p.IntN(2)),
		})
	}
	at += p.between(20*time.Millisecond, 200*time.Millisecond)
	for _, n := range victims {
		f := Fault{Kind: RestartEmpty, Servers: []int{n}, At: at, Part: part}
		p.busy[n] = at + p.Recovery
		p.faults = append(p.faults, f)
		at += p.between(0, apart)
	}
	if p.IntN(4) > 0 {
		f := Fault{
			At: at + p.TTL, For: p.Recovery - p.TTL/2, Part: part,
			Kind: []Kind{BlackHole, Cut}[p.IntN(2)], Servers: others, Side: Both,
		}
		for _, n := range others {
			p.busy[n] = f.At + f.For
		}
		p.faults = append(p.faults, f)
	}
}
