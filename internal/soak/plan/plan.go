// Package plan decides which faults happen when. A seed determines all of it.
package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/soak/work"
)

// Kind is what happens.
type Kind string

// The kinds of faults.
const (
	Kill         Kind = "kill"          // replica: SIGKILL, and a new process when the fault is over
	Freeze       Kind = "freeze"        // replica: SIGSTOP, then SIGCONT
	Roll         Kind = "roll"          // replica: stopped in order, and a new process as soon as it has ended
	Blackout     Kind = "blackout"      // all replicas: SIGKILL, and new processes when the fault is over
	RestartKeep  Kind = "restart-keep"  // server: SIGKILL, and started again with its data when the fault is over
	RestartEmpty Kind = "restart-empty" // server: SIGKILL, and started again without its data
)

// Fault is one thing that happens.
type Fault struct {
	At     time.Duration // from the start
	For    time.Duration // until it is put right
	Kind   Kind
	Target int // the replica or the server
}

// OnServer reports whether the kind strikes a server.
func (k Kind) OnServer() bool { return k == RestartKeep || k == RestartEmpty }

func (f Fault) String() string {
	target := fmt.Sprintf("replica %d", f.Target)
	switch {
	case f.Kind == Blackout:
		target = "all replicas"
	case f.Kind.OnServer():
		target = fmt.Sprintf("server %d", f.Target+1)
	}
	return fmt.Sprintf("%8.3fs  %-14s %s, for %s", f.At.Seconds(), f.Kind, target, f.For)
}

// Config is what a schedule depends on besides its seed.
type Config struct {
	Duration time.Duration // every fault begins and is put right within it
	Replicas int
	Servers  int           // 0 leaves them alone
	Recovery time.Duration // how long a restarted server does not vote: one is restarted only when the last one votes again
	Kinds    []Kind        // of faults of single replicas
	Blackout time.Duration // about so far apart; 0 for never
}

// What there is in a soak.
const (
	Servers  = 5
	Replicas = 5

	// quarantine is for how long a restarted server does not vote, at most: the longest TTL or three times the skew, and the skew, by clocks
	// that may be fast, rounded up twice; and a second until every replica has noticed. It only spaces the faults.
	quarantine = work.LeaderTTL + work.Skew + 3*time.Second
	// blackouts are about so far apart.
	blackouts = 40 * time.Second
)

// Soak returns the faults of a soak: all kinds, of all replicas and servers.
func Soak(seed uint64, duration time.Duration) []Fault {
	return Plan(seed, Config{
		Duration: duration, Replicas: Replicas, Servers: Servers, Recovery: quarantine, Kinds: []Kind{Kill, Freeze, Roll}, Blackout: blackouts,
	})
}

// The times of faults of replicas.
const (
	quiet      = 2 * time.Second // at the start
	rollTakes  = 4 * time.Second // at least until the replica may be struck again
	restTime   = 1500 * time.Millisecond
	maxFreeze  = 6 * time.Second
	maxAway    = 3 // replicas that are dead or frozen at a time
	blackoutIn = 4 * time.Second
)

// planner makes a schedule.
type planner struct {
	Config
	*rand.Rand
	faults []Fault
	busy   []time.Duration // when each replica may be struck again
}

// Plan returns the faults in the order of their times. At most three replicas are away at a time but for blackouts; one server is, at most.
func Plan(seed uint64, cfg Config) []Fault {
	p := &planner{Config: cfg, Rand: rand.New(rand.NewPCG(seed, 0x50a4)), busy: make([]time.Duration, cfg.Replicas)}
	if len(cfg.Kinds) > 0 {
		p.replicas()
	}
	if cfg.Servers > 0 {
		p.servers()
	}
	p.faults = slices.DeleteFunc(p.faults, func(f Fault) bool { return f.At+f.For > cfg.Duration })
	slices.SortStableFunc(p.faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return p.faults
}

// between draws a duration in whole milliseconds.
func (p *planner) between(low, high time.Duration) time.Duration {
	return low + time.Duration(p.Int64N(int64((high-low)/time.Millisecond)+1))*time.Millisecond
}

func (p *planner) replicas() {
	blackout := p.Duration + 1
	if p.Blackout > 0 {
		blackout = p.between(p.Blackout/4, p.Blackout/2)
	}
	for now := p.between(quiet, 2*quiet); now < p.Duration; {
		if now >= blackout {
			now = max(now, slices.Max(p.busy))
			f := Fault{At: now, For: p.between(500*time.Millisecond, blackoutIn), Kind: Blackout}
			p.faults = append(p.faults, f)
			for i := range p.busy {
				p.busy[i] = now + f.For + restTime
			}
			now += f.For + restTime
			blackout = now + p.between(p.Blackout/2, p.Blackout*3/2)
			continue
		}
		p.strike(now)
		now += p.between(300*time.Millisecond, 3*time.Second)
	}
}

// strike adds a fault of a replica that is well, if enough are.
func (p *planner) strike(now time.Duration) {
	var well []int
	for i, busy := range p.busy {
		if busy <= now {
			well = append(well, i)
		}
	}
	kind, n := p.Kinds[p.IntN(len(p.Kinds))], p.IntN(p.Replicas)
	if len(well) == 0 || p.Replicas-len(well) >= maxAway {
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
	}
	p.busy[f.Target] = now + f.For + rest
	p.faults = append(p.faults, f)
}

func (p *planner) servers() {
	for now := p.between(quiet, 2*quiet); now < p.Duration; {
		f := Fault{At: now, For: p.between(100*time.Millisecond, 2*time.Second), Kind: RestartKeep, Target: p.IntN(p.Servers)}
		if p.IntN(2) == 0 {
			f.Kind = RestartEmpty
		}
		p.faults = append(p.faults, f)
		now += f.For + p.Recovery + p.between(0, 3*time.Second)
	}
}

// Skews returns by how much each replica's clock is ahead: the first by most, the second behind by as much, the others anything between.
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
