package plan

import (
	"cmp"
	"slices"
	"time"
)

// Recovery is for how long a restarted server does not vote, at most: the longest TTL or three
// times the skew, and the skew, by clocks that may be fast, rounded up twice; and a second until
// every replica has noticed. It only spaces the faults.
const Recovery = LeaderTTL + Skew + 3*time.Second

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

// planner makes a schedule of faults of jobs.
type planner struct {
	Topology
	dice
	duration time.Duration
	faults   []Fault
	busy     []time.Duration // when each replica may be struck again
	away     []span          // when each server is, in the order of time
}

type span struct {
	from, to time.Duration
	server   int
}

// Jobs returns the faults of a run with jobs, in the order of their times. At most three replicas are away at a time
// but for blackouts and deploys. At most one server is restarted at a time, and votes again before
// the next one is.
func Jobs(seed uint64, t Topology, duration time.Duration) []Fault {
	p := &planner{Topology: t, dice: newDice(seed, 0x50a4), duration: duration, busy: make([]time.Duration, Replicas)}
	if len(t.Kinds) > 0 {
		p.replicas()
	}
	if len(t.Restarts) > 0 {
		p.restarts()
	}
	if t.Freezes > 0 {
		p.freezes()
	}
	if t.Pauses > 0 {
		p.pauses()
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
	kind  Kind
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
	f := Fault{At: now, Kind: kind, Client: well[n%len(well)]}
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
		f.Amount = p.between(-20*time.Millisecond, 30*time.Millisecond+p.Distance)
		rest = rollTakes + Beat
	}
	p.busy[f.Client] = now + f.For + rest
	p.faults = append(p.faults, f)
}

// pauses adds those of the jobs that are there to be paused: mostly short ones.
func (p *planner) pauses() {
	d := newDice(p.Uint64(), 0x9a05)
	for job := range PausedJobs {
		for now := d.between(quiet, 2*quiet); now < p.duration; now += d.between(p.Pauses/2, p.Pauses*3/2) {
			f := Fault{At: now, For: d.between(500*time.Millisecond, 5*time.Second), Kind: Pause, Key: job}
			if d.IntN(5) == 0 {
				f.For = d.between(10*time.Second, 20*time.Second)
			}
			p.faults = append(p.faults, f)
			now += f.For
		}
	}
}

func (p *planner) restarts() {
	const shortest = 100 * time.Millisecond
	n := 0
	for now := p.between(quiet, 2*quiet); now < p.duration; n++ {
		f := Fault{At: now, For: p.between(shortest, p.Outage), Kind: p.Restarts[p.IntN(len(p.Restarts))], Servers: []int{p.IntN(p.Servers)}}
		if p.InTurn {
			f.Servers[0] = n % p.Servers
		}
		switch f.Kind {
		case Latency:
			f.Amount = p.between(2*time.Millisecond, 300*time.Millisecond)
		case Bandwidth:
			f.Rate = 1 + p.IntN(16)
		case SlowClose:
			f.Amount = p.between(100*time.Millisecond, TTL)
		}
		if f.Kind.OnLink() {
			f.Side = Side(p.IntN(3))
		}
		p.faults = append(p.faults, f)
		now += f.For + Recovery + p.between(0, 3*time.Second)
		p.away = append(p.away, span{f.At, f.At + f.For, f.Servers[0]})
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
				p.faults = append(p.faults, Fault{At: now, For: length, Kind: FreezeServer, Servers: []int{server}})
			}
		}
		now += length + p.between(p.Freezes/2, p.Freezes*3/2)
	}
}

// Skews returns by how much each replica's clock is ahead: the first by most, the second behind by
// as much, the others anything between.
func Skews(seed uint64, replicas int, most time.Duration) []time.Duration {
	d := newDice(seed, 0xc10c)
	skews := make([]time.Duration, replicas)
	for i := range skews {
		skews[i] = d.between(-most, most)
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

// SetRight adds to the leaps of a clock that it is set right for good.
func SetRight(leaps []Leap, at, ahead time.Duration) []Leap {
	leaps = append(leaps, Leap{at, -ahead})
	slices.SortFunc(leaps, func(a, b Leap) int { return cmp.Compare(a.At, b.At) })
	return leaps
}

// Leaps returns when the clock of each replica leaps, and by how much: forward or back, and some
// seconds later the other way.
func Leaps(seed uint64, t Topology, replicas int, duration time.Duration) [][]Leap {
	d := newDice(seed, 0x1ea9)
	all := make([][]Leap, replicas)
	for i := range all {
		for now := d.between(quiet, 30*time.Second); t.Leaps && now < duration; now += d.between(15*time.Second, 45*time.Second) {
			by := d.between(maxLeap/5, maxLeap)
			if d.IntN(2) == 0 {
				by = -by
			}
			all[i] = append(all[i], Leap{now, by})
			now += d.between(time.Second, 6*time.Second)
			all[i] = append(all[i], Leap{now, -by})
		}
	}
	return all
}
