package plan

import (
	"cmp"
	"slices"
	"time"
)

// Config is what a schedule of faults of leases depends on besides its seed.
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

// attack makes a schedule of faults of leases. Its clock is the time of the schedule.
type attack struct {
	Config
	dice
	faults   []Fault
	episodes int
	now      time.Duration
	horizon  time.Duration   // when the next episode begins, once that is known: every server is well by then
	busy     []time.Duration // when each server is well again
	light    []bool          // whether what keeps it busy is light
	client   []time.Duration // when each client is
	key      []time.Duration // when the holder of each key may be struck again
}

// Leases returns the faults of a run with leases, in the order of their times. Faults of one server do not overlap, and
// neither do those of its links; only where a quorum forgets do both come together. At most a
// minority of the servers is impaired at a time, but for the episodes, in which a quorum is lost,
// divided or loses its memory.
func Leases(seed uint64, cfg Config) []Fault {
	p := &attack{
		Config: cfg,
		dice:   newDice(seed, 0x7e4e),
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

// weighted draws a kind.
func (p *attack) weighted(kinds []weight) Kind {
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
	kind   Kind
	weight int
}

var serverFaults = []weight{
	{RestartKeep, 8}, {RestartEmpty, 10}, {FreezeServer, 14}, {FlushAll, 9}, {ClockForward, 16}, {ClockBack, 10},
	{Cut, 10}, {BlackHole, 8}, {DropRequests, 8}, {DropReplies, 10}, {Latency, 8}, {Bandwidth, 6},
}

// lightFaults leave a server useful, so they may strike more than a minority.
var lightFaults = []weight{{ScriptFlush, 6}, {Latency, 8}, {Bandwidth, 4}, {SlowClose, 4}}

var clientFaults = []weight{{Kill, 3}, {KillHolder, 4}, {Freeze, 3}, {FreezeHolder, 4}, {Roll, 2}}

// strikeServer adds a fault of one server, or of its links: a light one if enough are impaired.
func (p *attack) strikeServer() {
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
	if kind == FlushAll && spare > 1 && len(well) > 1 && p.IntN(2) == 0 {
		p.harm(kind, well[1], p.now, false, "")
	}
}

// harm adds a fault of one server. A light one leaves it useful.
func (p *attack) harm(kind Kind, n int, at time.Duration, light bool, part string) {
	f := Fault{Kind: kind, Servers: []int{n}, At: at, Part: part}
	recovery := time.Duration(0)
	switch kind {
	case RestartKeep, RestartEmpty:
		f.For = p.between(0, p.TTL)
		recovery = p.Recovery
	case FreezeServer:
		f.For = p.between(100*time.Millisecond, 2*p.TTL)
	case ScriptFlush:
	case FlushAll:
		recovery = p.TTL
	case ClockForward, ClockBack:
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
func (p *attack) shape(f *Fault, light bool) {
	f.Side = Side(p.IntN(3))
	switch f.Kind {
	case Latency:
		f.Amount = p.between(2*time.Millisecond, 60*time.Millisecond)
		if !light {
			f.Amount *= 10
		}
	case Bandwidth:
		f.Rate = 1 + p.IntN(4)
		if light {
			f.Rate *= 8
		}
	case SlowClose:
		f.Amount = p.between(200*time.Millisecond, p.TTL)
		p.kill(KillHolder, f.At+f.For/2)
	}
}

// strikeClient adds a fault of one client.
func (p *attack) strikeClient() { p.kill(p.weighted(clientFaults), p.now) }

// kill adds a fault of a client, if the one it would strike is well.
func (p *attack) kill(kind Kind, at time.Duration) {
	f := Fault{
		Kind: kind, At: at, Client: p.IntN(p.Clients), Key: p.IntN(p.Keys), For: p.between(100*time.Millisecond, p.TTL/2),
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
