package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	quiet = 2 * time.Second // at the start
	// rest is how long at least a target is left alone between two faults.
	rest = 500 * ms
)

// planner makes a schedule of faults.
type planner struct {
	Topology
	Dice
	faults     []Fault
	episodes   int
	free, well map[string]time.Duration // from when each target may be struck again, and has recovered
}

// Faults returns the faults of a topology, in the order of their times. Faults of one target do not
// overlap; only where a quorum forgets those of a server and of its links come together.
func Faults(seed uint64, t Topology, duration time.Duration) []Fault {
	p := &planner{Topology: t, Dice: NewDice(seed, 0x7e4e), free: make(map[string]time.Duration), well: make(map[string]time.Duration)}
	next := make([]time.Duration, len(t.Streams))
	for i, s := range t.Streams {
		next[i] = quiet + p.Between(0, s.Every)
	}
	for len(next) > 0 && slices.Min(next) < duration {
		i := slices.Index(next, slices.Min(next))
		every := t.Streams[i].Every
		next[i] = p.strike(t.Streams[i], next[i]) + p.Between(every/2, every*3/2)
	}
	// What would not be put right in time is left out: an episode as a whole.
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

// things is how many there are of what a kind strikes, and their name.
func (p *planner) things(kind Kind) (name string, n int) {
	switch kind.On() {
	case Server, Links:
		return "server", p.Servers
	case Holder:
		return "key", Keys
	case Job:
		return "job", PausedJobs
	case Stranger:
		return "stranger", 1
	default:
		return "client", p.Topology.Clients
	}
}

// strike adds a fault of a target that may be struck, if there is one. It returns from when on the
// next one of the stream comes.
func (p *planner) strike(s Stream, now time.Duration) time.Duration {
	kind := s.Kinds[p.IntN(len(s.Kinds))]
	if kind == Episode {
		return p.episode(now)
	}
	n := natures[kind]
	name, count := p.things(kind)
	var all, able []int
	hurt, calm := 0, now
	for i := range count {
		free, well := p.free[fmt.Sprint(name, i)], p.well[fmt.Sprint(name, i)]
		calm = max(calm, free, well)
		all = append(all, i)
		if well > now {
			hurt++
		}
		if free <= now && (s.Most == 0 || well <= now) {
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
		f.Targets = []int{slices.MinFunc(able, func(a, b int) int { return cmp.Compare(p.free[fmt.Sprint(name, a)], p.free[fmt.Sprint(name, b)]) })}
	case !s.All:
		f.Targets = []int{able[p.IntN(len(able))]}
	}
	if n.on == Links {
		f.Side = Side(p.IntN(3))
	}
	if n.amount > 0 {
		f.Amount = p.Between(n.amount/50, n.amount)
	}
	if kind == RollAtTick { // from before the replica asks until the answers have come
		f.Amount = p.Between(-20*ms, 30*ms+p.Distance)
	}
	p.add(f)
	return max(now, f.At)
}

// length draws how long a fault goes on: mostly not so long.
func (p *planner) length(least, most time.Duration) time.Duration {
	if p.IntN(2) == 0 {
		most = least + (most-least)/4
	}
	return p.Between(least, max(least, most))
}

// add adds a fault.
func (p *planner) add(f Fault) {
	name, _ := p.things(f.Kind)
	for _, i := range f.Targets {
		key := fmt.Sprint(name, i)
		p.free[key] = max(p.free[key], f.At+f.For+rest)
		p.well[key] = max(p.well[key], f.At+f.For+natures[f.Kind].recovers)
	}
	p.faults = append(p.faults, f)
}
