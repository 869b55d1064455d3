package plan

import (
	"fmt"
	"slices"
	"time"
)

// episodes strike a quorum. Each begins when every server is well. The first are those that a lock
// which is broken in the usual way does not survive, and that in which no connection can be made.
var episodes = []func(p *planner, at time.Duration, victims, others []int) (part string){
	(*planner).forget, (*planner).divide, (*planner).expire, (*planner).roll, (*planner).lose, (*planner).forget,
}

// silence is what clients may have in place of a link.
var silence = []Kind{BlackHole, Cut, DropReplies, DropRequests}

// episode adds the faults of one, and returns when it is over.
func (p *planner) episode(now time.Duration) (over time.Duration) {
	order := p.Perm(p.Servers)
	at, n := max(now, p.calm()), p.episodes
	if p.episodes++; p.episodes > 3 {
		n = p.IntN(len(episodes))
	}
	before := len(p.faults)
	part := episodes[n](p, at, order[:p.Servers/2+1], order[p.Servers/2+1:])
	for i := range p.faults[before:] {
		p.faults[before+i].Part = fmt.Sprintf("%s at %s", part, at)
	}
	over = p.calm()
	p.spare("server", p.Servers, over)
	return over
}

// spare has nothing else strike the things of a name for a time.
func (p *planner) spare(name string, count int, until time.Duration) {
	for i := range count {
		key := fmt.Sprint(name, i)
		p.free[key], p.well[key] = max(p.free[key], until), max(p.well[key], until)
	}
}

// calm is when all servers are well.
func (p *planner) calm() (at time.Duration) {
	for i := range p.Servers {
		at = max(at, p.free[fmt.Sprint("server", i)], p.well[fmt.Sprint("server", i)])
	}
	return at
}

// silent adds that clients of a side, or all, do not reach servers for a time.
func (p *planner) silent(at, length time.Duration, servers []int, side Side) {
	p.add(Fault{Kind: silence[p.IntN(len(silence))], At: at, For: length, Targets: servers, Side: side})
}

// lose takes a quorum away: nobody can hold anything for a while.
func (p *planner) lose(at time.Duration, victims, _ []int) string {
	for i, n := range victims {
		length := p.Between(100*ms, 2*LeaderTTL)
		if i == 0 {
			p.add(Fault{Kind: FreezeServer, At: at, For: length, Targets: []int{n}})
			continue
		}
		p.silent(at+p.Between(0, 100*ms), length, []int{n}, Both)
	}
	return "quorum lost"
}

// divide cuts one side of the clients off from a quorum, while the other reaches all.
func (p *planner) divide(at time.Duration, victims, _ []int) string {
	p.silent(at, p.Between(LeaderTTL/2, 3*LeaderTTL), victims, Left+Side(p.IntN(2)))
	return "division"
}

// expire has all certificates expire: who is connected goes on, and nobody can connect. No client
// is struck meanwhile.
func (p *planner) expire(at time.Duration, victims, others []int) string {
	n := natures[Expire]
	p.spare("client", p.Topology.Clients, at+n.most)
	p.spare("key", Keys, at+n.most)
	p.add(Fault{Kind: Expire, At: at, For: p.Between(n.least, n.most), Targets: slices.Concat(victims, others)})
	return "certificates"
}

// roll restarts a quorum without its data, one server after the other, as in a rolling deploy of
// servers without persistence: each when the one before it knows again what the others remember.
func (p *planner) roll(at time.Duration, victims, _ []int) string {
	for _, n := range victims {
		p.add(Fault{Kind: RestartEmpty, Targets: []int{n}, At: at})
		at += Recovery + 2*time.Second
	}
	return "one after the other"
}

// forget restarts a quorum without its data, one server soon after the other: if they voted at
// once, a second client would get a lease that lives. A holder that is well puts its key back soon;
// one that is cut off from these servers, or frozen, does not. Mostly the other servers are cut off
// when these vote again, so that nobody who votes remembers a fencing counter.
func (p *planner) forget(at time.Duration, victims, others []int) string {
	if p.episodes > 1 && p.IntN(3) == 0 {
		for key := range Keys {
			p.add(Fault{Kind: FreezeHolder, At: at, For: LeaderTTL, Targets: []int{key}})
		}
	} else {
		p.silent(at, LeaderTTL, victims, Left+Side(p.IntN(2)))
	}
	at += p.Between(20*ms, 200*ms)
	for _, n := range victims {
		p.add(Fault{Kind: RestartEmpty, Targets: []int{n}, At: at})
		at += p.Between(0, 150*ms)
	}
	if p.IntN(4) > 0 {
		p.silent(at+LeaderTTL, Recovery-LeaderTTL/2, others, Both)
	}
	return "quorum forgets"
}
