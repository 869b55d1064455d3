package plan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/fault"
)

// Config is what a schedule depends on besides its seed.
type Config struct {
	Duration time.Duration // every fault is put right within it
	Servers  int
	Clients  int
	Keys     int
	TTL      time.Duration // the longest
	Recovery time.Duration // how long a server is kept from voting after a restart or a jump of its clock
}

// MaxJump is by how much a server's clock is moved at most.
const MaxJump = 3 * time.Second

// planner makes a schedule. Its clock is the time of the schedule.
type planner struct {
	Config
	*rand.Rand
	faults   []Fault
	episodes int
	now      time.Duration
	horizon  time.Duration   // when the next episode begins, once that is known: every server is well by then
	busy     []time.Duration // when each server is well again
	light    []bool          // whether what keeps it busy is light
	client   []time.Duration // when each client is
	key      []time.Duration // when the holder of each key may be struck again
}

// Plan returns the faults in the order of their times. Faults of one server do not overlap, and
// neither do those of its links; only where a quorum forgets do both come together. At most a
// minority of the servers is impaired at a time, but for the episodes, in which a quorum is lost,
// divided or loses its memory.
func Plan(seed uint64, cfg Config) []Fault {
	p := &planner{
		Config: cfg,
		Rand:   rand.New(rand.NewPCG(seed, 0x7e4e)),
		busy:   make([]time.Duration, cfg.Servers),
		light:  make([]bool, cfg.Servers),
		client: make([]time.Duration, cfg.Clients),
		key:    make([]time.Duration, cfg.Keys),
	}
	p.now = p.between(200*time.Millisecond, 600*time.Millisecond)
	episode := p.between(time.Second, 3*time.Second)
	for p.now < cfg.Duration {
		if p.now >= episode && p.horizon == 0 {
			p.horizon = max(p.now, slices.Max(p.busy))
		}
		if p.horizon != 0 && p.now >= p.horizon {
			p.episode()
			p.horizon = 0
			episode = p.now + p.between(3*time.Second, 9*time.Second)
			continue
		}
		if p.IntN(4) == 0 {
			p.strikeClient()
		} else {
			p.strikeServer()
		}
		p.now += p.between(50*time.Millisecond, 450*time.Millisecond)
	}
	// What would not be put right in time is left out: an episode as a whole.
	late := make(map[string]bool)
	for _, f := range p.faults {
		if f.At+f.For > cfg.Duration {
			late[f.Part] = f.Part != ""
		}
	}
	faults := slices.DeleteFunc(p.faults, func(f Fault) bool { return f.At+f.For > cfg.Duration || late[f.Part] })
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return faults
}

// between draws a duration in whole milliseconds.
func (p *planner) between(low, high time.Duration) time.Duration {
	return low + time.Duration(p.Int64N(int64((high-low)/time.Millisecond)+1))*time.Millisecond
}

// weighted draws a kind.
func (p *planner) weighted(kinds []weight) fault.Kind {
	total := 0
	for _, w := range kinds {
		total += w.weight
	}
	n := p.IntN(total)
	for _, w := range kinds {
		if n -= w.weight; n < 0 {
			return w.kind
		}
	}
	return kinds[0].kind
}

type weight struct {
	kind   fault.Kind
	weight int
}

var serverFaults = []weight{
	{fault.RestartKeep, 8}, {fault.RestartEmpty, 10}, {fault.FreezeServer, 14}, {fault.FlushAll, 9}, {fault.ClockForward, 16}, {fault.ClockBack, 10},
	{fault.Cut, 10}, {fault.BlackHole, 8}, {fault.DropRequests, 8}, {fault.DropReplies, 10}, {fault.Latency, 8}, {fault.Bandwidth, 6},
}

// lightFaults leave a server useful, so they may strike more than a minority.
var lightFaults = []weight{{fault.ScriptFlush, 6}, {fault.Latency, 8}, {fault.Bandwidth, 4}, {fault.SlowClose, 4}}

var clientFaults = []weight{{KillClient, 3}, {KillHolder, 4}, {FreezeClient, 3}, {FreezeHolder, 4}}

// strikeServer adds a fault of one server, or of its links: a light one if enough are impaired.
func (p *planner) strikeServer() {
	var well []int
	impaired := 0
	for n := range p.busy {
		if p.busy[n] <= p.now {
			well = append(well, n)
		} else if !p.light[n] {
			impaired++
		}
	}
	if len(well) == 0 {
		return
	}
	p.Shuffle(len(well), func(i, j int) { well[i], well[j] = well[j], well[i] })
	spare := (p.Servers-1)/2 - impaired
	if p.IntN(6) == 0 {
		p.harm(p.weighted(lightFaults), well[0], p.now, true, "")
		return
	}
	if spare <= 0 {
		return
	}
	kind := p.weighted(serverFaults)
	p.harm(kind, well[0], p.now, false, "")
	if kind == fault.FlushAll && spare > 1 && len(well) > 1 && p.IntN(2) == 0 {
		p.harm(kind, well[1], p.now, false, "")
	}
}

// harm adds a fault of one server. A light one leaves it useful.
func (p *planner) harm(kind fault.Kind, n int, at time.Duration, light bool, part string) {
	f := Fault{Fault: fault.Fault{Kind: kind, Nodes: []int{n}}, At: at, Part: part}
	recovery := time.Duration(0)
	switch kind {
	case fault.RestartKeep, fault.RestartEmpty:
		f.For = p.between(0, p.TTL)
		recovery = p.Recovery
	case fault.FreezeServer:
		f.For = p.between(100*time.Millisecond, 2*p.TTL)
	case fault.ScriptFlush:
	case fault.FlushAll:
		recovery = p.TTL
	case fault.ClockForward, fault.ClockBack:
		f.For = p.between(500*time.Millisecond, 4*time.Second)
		f.Amount = p.between(20*time.Millisecond, MaxJump)
		recovery = p.Recovery
	default:
		f.For = p.between(100*time.Millisecond, 2*p.TTL)
		p.shape(&f, light)
	}
	until := at + f.For + recovery
	if p.horizon != 0 && part == "" && until > p.horizon {
		return
	}
	p.busy[n] = until
	p.light[n] = light
	p.faults = append(p.faults, f)
}

// shape completes a fault of a link.
func (p *planner) shape(f *Fault, light bool) {
	f.Side = fault.Side(p.IntN(3))
	switch f.Kind {
	case fault.Latency:
		f.Amount = p.between(2*time.Millisecond, 60*time.Millisecond)
		if !light {
			f.Amount *= 10
		}
	case fault.Bandwidth:
		f.Rate = 1 + p.IntN(4)
		if light {
			f.Rate *= 8
		}
	case fault.SlowClose:
		f.Amount = p.between(200*time.Millisecond, p.TTL)
		p.kill(KillHolder, f.At+f.For/2)
	}
}

// strikeClient adds a fault of one client.
func (p *planner) strikeClient() { p.kill(p.weighted(clientFaults), p.now) }

// kill adds a fault of a client, if the one it would strike is well.
func (p *planner) kill(kind fault.Kind, at time.Duration) {
	f := Fault{
		Fault: fault.Fault{Kind: kind}, At: at, Client: p.IntN(p.Clients), Key: p.IntN(p.Keys), For: p.between(100*time.Millisecond, p.TTL/2),
	}
	if p.IntN(3) == 0 {
		f.For = p.between(p.TTL/2, 2*p.TTL)
	}
	well := &p.client[f.Client]
	if kind == KillHolder || kind == FreezeHolder {
		f.Client = 0
		well = &p.key[f.Key]
	} else {
		f.Key = 0
	}
	if *well > at {
		return
	}
	*well = at + f.For
	p.faults = append(p.faults, f)
}
