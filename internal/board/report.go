package board

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	random "math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

// tellSoon is after how long a process tells what it has to tell newly.
const tellSoon = 500 * time.Millisecond

// Report is what a part of a process has to tell.
type Report struct {
	Process bulletin.Process // its lists of what runs, leads and is there, with those of the other parts
	Cards   []bulletin.Card
	Entries []bulletin.Entry
	// Lost, if it is not nil, is called if no node has answered that it took all of that. Some may
	// have it all the same.
	Lost func()
}

// Report has f asked, about every bulletin.TellEvery and soon at first, for what to post; all parts
// of a process go into one command to each node. The process has a card while it has parts. f is
// called by one goroutine, must not block, and must not call stop.
//
// Call stop, or close the Quorum, to end it; with the last one the process takes down its card, for
// which stop waits as Post does.
func (b Board) Report(f func() Report) (stop func()) {
	if b.q == nil {
		return func() {}
	}
	r := b.q.Extra(reporterKey{}, func() any {
		return &reporter{b: b, news: make(chan struct{}, 1), parts: make(map[*part]struct{}), me: b.process()}
	}).(*reporter)
	return r.add(f)
}

// reporter posts what the parts of a process have to tell.
type reporter struct {
	b      Board
	me     bulletin.Process // without what changes
	begins sync.Once
	news   chan struct{} // capacity 1; there is a new part

	// Of run.
	nodes []bulletin.NodeSeen // as they were seen
	since int64               // then, in milliseconds since 1970

	mu    sync.Mutex
	began time.Time // guarded by mu; zero while there are no parts
	parts map[*part]struct{}
}

type reporterKey struct{}

type part struct{ f func() Report }

func (r *reporter) add(f func() Report) (stop func()) {
	p := &part{f}
	r.mu.Lock()
	if len(r.parts) == 0 {
		r.began = time.Now()
	}
	r.parts[p] = struct{}{}
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
	r.begins.Do(func() { r.b.q.Background(r.run) })
	return sync.OnceFunc(func() {
		r.mu.Lock()
		delete(r.parts, p)
		r.mu.Unlock()
		r.takeDown()
	})
}

// run posts until the Quorum is closed.
func (r *reporter) run() {
	timer := time.NewTimer(tellSoon)
	defer timer.Stop()
	for {
		select {
		case <-r.b.quorum.Closed():
			return
		case <-r.news:
			timer.Reset(tellSoon)
		case <-timer.C:
			r.beat()
			timer.Reset(bulletin.TellEvery*9/10 + random.N(bulletin.TellEvery/5)) // processes that were started together
		}
	}
}

// beat posts once. What no node takes is lost, unless the part that said it says it again: the
// next beat tells what is then.
func (r *reporter) beat() {
	r.mu.Lock()
	parts, card := slices.Collect(maps.Keys(r.parts)), r.me
	card.Began = r.began.UnixMilli()
	r.mu.Unlock()
	if len(parts) == 0 {
		return
	}
	card.Nodes = r.look(card.Began)
	var cards []bulletin.Card
	var entries []bulletin.Entry
	var lost []func()
	for _, p := range parts {
		said := p.f()
		if said.Lost != nil {
			lost = append(lost, said.Lost)
		}
		cards, entries = append(cards, said.Cards...), append(entries, said.Entries...)
		card.Running = append(card.Running, said.Process.Running...)
		card.Elections = append(card.Elections, said.Process.Elections...)
		card.Jobs = append(card.Jobs, said.Process.Jobs...)
	}
	if err := r.b.Post(context.Background(), append(cards, card.Card()), entries...); err != nil {
		for _, f := range lost {
			f()
		}
	}
	r.takeDown() // if the last part has ended meanwhile, and this has come after
}

// look is how the process sees the nodes now, and saw them since it began to.
func (r *reporter) look(began int64) []bulletin.NodeSeen {
	if r.since != began {
		r.since, r.nodes = began, make([]bulletin.NodeSeen, r.b.q.Nodes())
	}
	for i := range r.nodes {
		err, why := r.b.q.Vote(i), ""
		if err != nil {
			why = (&redlock.NodeError{Err: err}).ErrorType()
		}
		r.nodes[i].Node = r.b.q.Address(i)
		r.nodes[i].See(err == nil, why, time.Now().UnixMilli())
	}
	return slices.Clone(r.nodes)
}

// takeDown takes down the card of a process without parts.
func (r *reporter) takeDown() {
	r.mu.Lock()
	none := len(r.parts) == 0
	r.mu.Unlock()
	if none {
		_ = r.b.Post(context.Background(), []bulletin.Card{{Kind: bulletin.Processes, ID: r.me.Process}}) // or it expires
	}
}

// process is what this one is.
func (b Board) process() bulletin.Process {
	p := bulletin.Process{Process: rand.Text(), Identity: b.quorum.Identity(), PID: os.Getpid()}
	p.Host, _ = os.Hostname()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return p
	}
	p.Program, p.Version = info.Path, info.Main.Version
	if p.Version == "(devel)" {
		p.Version = ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			p.Version = cmp.Or(p.Version, s.Value)
		}
	}
	return p
}
