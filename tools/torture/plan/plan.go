package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	quiet = 2 * time.Second // at the start, without faults
	// rest is the shortest time between two faults of a target.
	rest = 500 * ms
)

// planner makes a schedule of faults.
type planner struct {
	Topology
	Dice
	faults   []Fault
	episodes int
	things   map[Target][]thing
}

// thing is a server, a client, a key or a job.
type thing struct{ free, well time.Duration } // when it may be struck again, and when it has recovered

// spare keeps the thing from faults until it is free and, for streams with a bound, well.
func (t *thing) spare(free, well time.Duration) {
	t.free, t.well = max(t.free, free), max(t.well, well)
}

// Faults returns the faults of a topology, in the order of their times. Faults of one target do not
// overlap, with one exception: when a quorum forgets, a server and its links are struck together.
func Faults(seed uint64, t Topology, duration time.Duration) []Fault {
	servers, clients := make([]thing, t.Servers), make([]thing, t.Clients)
	p := &planner{Topology: t, Dice: NewDice(seed, 0x7e4e), things: map[Target][]thing{
		Server: servers, Links: servers, Client: clients, Clients: clients,
		Holder: make([]thing, Keys), Job: make([]thing, PausedJobs), Stranger: make([]thing, 1),
	}}
	next := make([]time.Duration, len(t.Streams))
	for i, s := range t.Streams {
		next[i] = quiet + p.Between(0, s.Every)
	}
	for len(next) > 0 && slices.Min(next) < duration {
		i := slices.Index(next, slices.Min(next))
		every := t.Streams[i].Every
		next[i] = p.strike(t.Streams[i], next[i]) + p.Between(every/2, every*3/2)
	}
	// A fault that would not be put right in time is left out, and with it its whole episode.
	late := make(map[string]bool)
	for _, f := range p.faults {
		if f.At+f.For > duration {
			late[f.Part] = f.Part != ""
		}
	}
	faults := slices.DeleteFunc(p.faults, func(f Fault) bool { return f.At+f.For > duration || late[f.Part] })
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return faults
}

// strike adds a fault of the stream, if it finds a target that may be struck. It returns the time
// from which the next fault of the stream is planned.
func (p *planner) strike(s Stream, now time.Duration) time.Duration {
	kind := s.Kinds[p.IntN(len(s.Kinds))]
	if kind == Episode {
		return p.episode(now)
	}
	n := natures[kind]
	things := p.things[n.on]
	var all, able []int
	hurt, calm := 0, now
	for i, t := range things {
		calm = max(calm, t.free, t.well)
		all = append(all, i)
		if t.well > now {
			hurt++
		}
		if t.free <= now && (s.Most == 0 || t.well <= now) {
			able = append(able, i)
		}
	}
	f := Fault{Kind: kind, At: now, For: p.length(n.least, cmp.Or(s.Longest, n.most)), Targets: able}
	switch {
	case n.on == Clients:
		f.At, f.Targets = calm, all
	case len(able) == 0 || s.Most > 0 && hurt >= s.Most:
		return now
	case s.InTurn:
		f.Targets = []int{slices.MinFunc(able, func(a, b int) int { return cmp.Compare(things[a].free, things[b].free) })}
	case !s.All:
		f.Targets = []int{able[p.IntN(len(able))]}
	}
	if n.on == Links {
		f.Side = Side(p.IntN(3))
	}
	if n.amount > 0 {
		f.Amount = p.Between(n.amount/50, n.amount)
	}
	if kind == RollAtTick { // from before the replica asks for the lease until the answers have come
		f.Amount = p.Between(-20*ms, 30*ms+p.Distance)
	}
	p.add(f)
	return max(now, f.At)
}

// length draws the duration of a fault. Half of the durations are from the first quarter of the
// range.
func (p *planner) length(least, most time.Duration) time.Duration {
	if p.IntN(2) == 0 {
		most = least + (most-least)/4
	}
	return p.Between(least, max(least, most))
}

// add adds a fault, and notes when its targets may be struck again.
func (p *planner) add(f Fault) {
	n := natures[f.Kind]
	for _, i := range f.Targets {
		p.things[n.on][i].spare(f.At+f.For+rest, f.At+f.For+n.recovers)
	}
	p.faults = append(p.faults, f)
}

// episodes strike a quorum. Each begins when every server is well. The first three happen in this
// order, the later ones are drawn. A lock with one of the usual faults does not survive the first
// two, and in the third no connection can be made.
var episodes = []func(p *planner, at time.Duration, victims, others []int) (part string){
	(*planner).forget, (*planner).divide, (*planner).expire, (*planner).roll, (*planner).lose, (*planner).forget,
}

// silence is the faults of links that keep a client from hearing of a server.
var silence = []Kind{BlackHole, Cut, DropReplies, DropRequests}

// episode adds the faults of the next episode, and returns when that episode is over.
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
	p.spare(Server, over)
	return over
}

// spare keeps all things of a kind from other faults until a time.
func (p *planner) spare(on Target, until time.Duration) {
	for i := range p.things[on] {
		p.things[on][i].spare(until, until)
	}
}

// calm returns when all servers are well and may be struck.
func (p *planner) calm() (at time.Duration) {
	for _, t := range p.things[Server] {
		at = max(at, t.free, t.well)
	}
	return at
}

// silent adds a fault that keeps the clients of a side, or all clients, from reaching servers for a
// time.
func (p *planner) silent(at, length time.Duration, servers []int, side Side) {
	p.add(Fault{Kind: silence[p.IntN(len(silence))], At: at, For: length, Targets: servers, Side: side})
}

// lose takes a quorum away: no client can hold a lease for a while.
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

// divide cuts one side of the clients off from a quorum, while the other side reaches all servers.
func (p *planner) divide(at time.Duration, victims, _ []int) string {
	p.silent(at, p.Between(LeaderTTL/2, 3*LeaderTTL), victims, Left+Side(p.IntN(2)))
	return "division"
}

// expire lets all certificates expire: connections stay, but no new ones can be made. No client is
// struck meanwhile.
func (p *planner) expire(at time.Duration, victims, others []int) string {
	n := natures[Expire]
	p.spare(Client, at+n.most)
	p.spare(Holder, at+n.most)
	p.add(Fault{Kind: Expire, At: at, For: p.Between(n.least, n.most), Targets: slices.Concat(victims, others)})
	return "certificates"
}

// roll restarts a quorum without its data, one server after the other, as in a rolling deploy of
// servers without persistence. Before the next restart, a server has the time to learn again what
// the others remember.
func (p *planner) roll(at time.Duration, victims, _ []int) string {
	for _, n := range victims {
		p.add(Fault{Kind: RestartEmpty, Targets: []int{n}, At: at})
		at += Recovery + 2*time.Second
	}
	return "one after the other"
}

// forget restarts a quorum without its data, one server soon after the other. If these servers
// voted at once, a second client would be granted a lease while the first lease is valid. A holder
// that is well puts its key back soon. A holder that is frozen, or cut off from these servers, does
// not. Mostly the other servers are cut off when these vote again, so that no voting server
// remembers a fencing counter.
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

// Leap is one leap of a clock.
type Leap struct {
	At time.Duration `json:"at"` // from the start
	By time.Duration `json:"by"` // back if it is negative
}

// maxLeap is the most by which a clock leaps.
const maxLeap = 1500 * ms

// Clock returns by how much a client's clock is ahead, and when it leaps: forward or back, and some
// seconds later the other way. The first client's clock is ahead by the most that the topology
// allows, and the second client's is behind by as much. Where clocks leap, both are set right for
// good in the middle of the run.
func Clock(seed uint64, t Topology, client int, duration time.Duration) (ahead time.Duration, leaps []Leap) {
	d := NewDice(seed, 0x1ea9+uint64(client))
	ahead = d.Between(-t.Ahead, t.Ahead)
	if client < 2 {
		ahead = []time.Duration{t.Ahead, -t.Ahead}[client]
	}
	if !t.Leaps {
		return ahead, nil
	}
	for now := d.Between(quiet, 30*time.Second); now < duration; now += d.Between(15*time.Second, 45*time.Second) {
		by := d.Between(maxLeap/5, maxLeap)
		if d.IntN(2) == 0 {
			by = -by
		}
		leaps = append(leaps, Leap{now, by})
		now += d.Between(time.Second, 6*time.Second)
		leaps = append(leaps, Leap{now, -by})
	}
	if client < 2 {
		leaps = append(leaps, Leap{duration / 2, -ahead})
		slices.SortFunc(leaps, func(a, b Leap) int { return cmp.Compare(a.At, b.At) })
	}
	return ahead, leaps
}
