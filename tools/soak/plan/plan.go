// Package plan decides which faults happen when. A seed determines all of it.
package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// The kinds of faults of replicas. Those of servers are RestartKeep, RestartEmpty and FreezeServer
// of package fault.
const (
	Kill       fault.Kind = "kill"         // replica: SIGKILL, and a new process when the fault is over
	Freeze     fault.Kind = "freeze"       // replica: SIGSTOP, then SIGCONT
	Roll       fault.Kind = "roll"         // replica: stopped in order, and a new process as soon as it has ended
	RollAtTick fault.Kind = "roll-at-tick" // the same, a moment before or after a beat of the jobs (work.Beat), by the replica's clock
	Blackout   fault.Kind = "blackout"     // all replicas: SIGKILL, and new processes when the fault is over
	Deploy     fault.Kind = "deploy"       // all replicas: rolled one after the other, without waiting for each other
)

// Fault is one thing that happens.
type Fault struct {
	At     time.Duration // from the start
	For    time.Duration // until it is put right
	Kind   fault.Kind
	Target int           // the replica or the server
	Offset time.Duration // from the beat, for RollAtTick
}

// OnServer reports whether the fault strikes a server.
func (f Fault) OnServer() bool {
	return f.Kind == fault.RestartKeep || f.Kind == fault.RestartEmpty || f.Kind == fault.FreezeServer
}

// OnAll reports whether the kind strikes all replicas.
func OnAll(k fault.Kind) bool { return k == Blackout || k == Deploy }

// Begins implements nemesis.Fault.
func (f Fault) Begins() time.Duration { return f.At }

// Targets implements nemesis.Fault: faults of a server, or of a replica, do not overlap.
func (f Fault) Targets() []string {
	switch {
	case f.OnServer():
		return []string{fmt.Sprint("server ", f.Target)}
	case OnAll(f.Kind):
		var all []string
		for number := range Replicas {
			all = append(all, fmt.Sprint("replica ", number))
		}
		return all
	default:
		return []string{fmt.Sprint("replica ", f.Target)}
	}
}

func (f Fault) String() string {
	target := fmt.Sprintf("replica %d", f.Target)
	switch {
	case OnAll(f.Kind):
		target = "all replicas"
	case f.OnServer():
		target = fmt.Sprintf("server %d", f.Target+1)
	}
	text := fmt.Sprintf("%8.3fs  %-14s %s, for %s", f.At.Seconds(), f.Kind, target, f.For)
	if f.Kind == RollAtTick {
		text += fmt.Sprintf(", %s from the tick", f.Offset)
	}
	return text
}

// Recovery is for how long a restarted server does not vote, at most: the longest TTL or three
// times the skew, and the skew, by clocks that may be fast, rounded up twice; and a second until
// every replica has noticed. It only spaces the faults.
const Recovery = work.LeaderTTL + work.Skew + 3*time.Second

// The times of faults.
const (
	quiet      = 2 * time.Second // at the start
	rollTakes  = 4 * time.Second // at least until the replica may be struck again
	restTime   = 1500 * time.Millisecond
	minGap     = 300 * time.Millisecond
	maxFreeze  = 6 * time.Second
	maxAway    = 3 // replicas that are dead or frozen at a time
	blackoutIn = 4 * time.Second
	// DeployTakes is within which time a deploy tells all replicas to stop.
	DeployTakes = 3 * time.Second
	// maxStall is for how long all servers are frozen at a time: longer than a node timeout,
	// shorter than what is left of a tick's time.
	maxStall = 900 * time.Millisecond
	maxLeap  = 1500 * time.Millisecond
)

// planner makes a schedule.
type planner struct {
	Topology
	*rand.Rand
	duration time.Duration
	faults   []Fault
	busy     []time.Duration // when each replica may be struck again
	away     []span          // when each server is, in the order of time
}

type span struct {
	from, to time.Duration
	server   int
}

// Plan returns the faults in the order of their times. At most three replicas are away at a time
// but for blackouts and deploys. At most one server is restarted at a time, and votes again before
// the next one is.
func Plan(seed uint64, t Topology, duration time.Duration) []Fault {
	p := &planner{Topology: t, Rand: rand.New(rand.NewPCG(seed, 0x50a4)), duration: duration, busy: make([]time.Duration, Replicas)}
	if len(t.Kinds) > 0 {
		p.replicas()
	}
	if len(t.Restarts) > 0 {
		p.restarts()
	}
	if t.Freezes > 0 {
		p.freezes()
	}
	p.faults = slices.DeleteFunc(p.faults, func(f Fault) bool { return f.At+f.For > duration })
	slices.SortStableFunc(p.faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return p.faults
}

// between draws a duration in whole milliseconds.
func (p *planner) between(low, high time.Duration) time.Duration {
	return low + time.Duration(p.Int64N(int64((high-low)/time.Millisecond)+1))*time.Millisecond
}

// common is a fault of all replicas, which happens now and then.
type common struct {
	kind  fault.Kind
	every time.Duration
	next  time.Duration
}

func (p *planner) replicas() {
	var all []*common
	for _, c := range []common{{kind: Blackout, every: p.Blackouts}, {kind: Deploy, every: p.Deploys}} {
		if c.every > 0 {
			c.next = p.between(c.every/4, c.every/2)
			all = append(all, &c)
		}
	}
	for now := p.between(quiet, 2*quiet); now < p.duration; {
		if i := slices.IndexFunc(all, func(c *common) bool { return now >= c.next }); i >= 0 {
			now = p.strikeAll(max(now, slices.Max(p.busy)), all[i])
			continue
		}
		p.strike(now)
		now += p.between(minGap, p.Gap)
	}
}

// strikeAll adds a fault of all replicas, and returns when there may be the next one.
func (p *planner) strikeAll(now time.Duration, c *common) time.Duration {
	f, rest := Fault{At: now, For: DeployTakes, Kind: c.kind}, rollTakes
	if c.kind == Blackout {
		f.For, rest = p.between(500*time.Millisecond, blackoutIn), restTime
	}
	p.faults = append(p.faults, f)
	end := now + f.For + rest
	for i := range p.busy {
		p.busy[i] = end
	}
	c.next = end + p.between(c.every/2, c.every*3/2)
	return end
}

// strike adds a fault of a replica that is well, if enough are.
func (p *planner) strike(now time.Duration) {
	var well []int
	for i, busy := range p.busy {
		if busy <= now {
			well = append(well, i)
		}
	}
	kind, n := p.Kinds[p.IntN(len(p.Kinds))], p.IntN(len(p.busy))
	if len(well) == 0 || len(p.busy)-len(well) >= maxAway {
		return
	}
	f := Fault{At: now, Kind: kind, Target: well[n%len(well)]}
	rest := restTime
	switch kind {
	case Kill:
		f.For = p.between(100*time.Millisecond, 4*time.Second)
	case Freeze:
		f.For = p.between(300*time.Millisecond, maxFreeze)
	case Roll:
		rest = rollTakes
	case RollAtTick:
		// From before the replica asks until the answers have come.
		f.Offset = p.between(-20*time.Millisecond, 30*time.Millisecond+p.Distance)
		rest = rollTakes + work.Beat
	}
	p.busy[f.Target] = now + f.For + rest
	p.faults = append(p.faults, f)
}

func (p *planner) restarts() {
	const shortest = 100 * time.Millisecond
	n := 0
	for now := p.between(quiet, 2*quiet); now < p.duration; n++ {
		f := Fault{At: now, For: p.between(shortest, p.Outage), Kind: p.Restarts[p.IntN(len(p.Restarts))], Target: p.IntN(p.Servers)}
		if p.InTurn {
			f.Target = n % p.Servers
		}
		p.faults = append(p.faults, f)
		now += f.For + Recovery + p.between(0, 3*time.Second)
		p.away = append(p.away, span{f.At, f.At + f.For, f.Target})
	}
}

// freezes adds freezes of servers that are there: of one, shorter or longer than a node timeout, or
// of all for a moment.
func (p *planner) freezes() {
	const shortest, margin = 50 * time.Millisecond, 500 * time.Millisecond
	for now := p.between(quiet, 2*quiet); now < p.duration; {
		one, length := p.IntN(p.Servers), p.between(shortest, maxFreeze/2)
		if p.IntN(2) == 0 {
			length = p.between(shortest, maxStall)
		}
		if p.Everywhere && p.IntN(2) == 0 {
			one, length = -1, p.between(shortest, maxStall)
		}
		for server := range p.Servers {
			gone := slices.ContainsFunc(p.away, func(s span) bool {
				return s.server == server && s.from < now+length+margin && now < s.to+margin
			})
			if !gone && (one < 0 || one == server) {
				p.faults = append(p.faults, Fault{At: now, For: length, Kind: fault.FreezeServer, Target: server})
			}
		}
		now += length + p.between(p.Freezes/2, p.Freezes*3/2)
	}
}

// Skews returns by how much each replica's clock is ahead: the first by most, the second behind by
// as much, the others anything between.
func Skews(seed uint64, replicas int, most time.Duration) []time.Duration {
	p := &planner{Rand: rand.New(rand.NewPCG(seed, 0xc10c))}
	skews := make([]time.Duration, replicas)
	for i := range skews {
		skews[i] = p.between(-most, most)
	}
	if replicas > 1 {
		skews[0], skews[1] = most, -most
	}
	return skews
}

// Leap is a moment in which a clock leaps.
type Leap struct {
	At time.Duration `json:"at"` // from the start
	By time.Duration `json:"by"` // back if it is negative
}

// Leaps returns when the clock of each replica leaps, and by how much: forward or back, and some
// seconds later the other way.
func Leaps(seed uint64, t Topology, replicas int, duration time.Duration) [][]Leap {
	p := &planner{Rand: rand.New(rand.NewPCG(seed, 0x1ea9))}
	all := make([][]Leap, replicas)
	for i := range all {
		for now := p.between(quiet, 30*time.Second); t.Leaps && now < duration; now += p.between(15*time.Second, 45*time.Second) {
			by := p.between(maxLeap/5, maxLeap)
			if p.IntN(2) == 0 {
				by = -by
			}
			all[i] = append(all[i], Leap{now, by})
			now += p.between(time.Second, 6*time.Second)
			all[i] = append(all[i], Leap{now, -by})
		}
	}
	return all
}
