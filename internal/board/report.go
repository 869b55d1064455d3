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

// tellSoon is the delay before a process first posts the report of a new part.
const tellSoon = 500 * time.Millisecond

// Report is what a part of a process, such as a Scheduler, has to tell.
type Report struct {
	Process bulletin.Process // only Running, Elections and Jobs, which are added to those of the other parts
	Cards   []bulletin.Card
	Entries []bulletin.Entry
	// Lost, if it is not nil, is called if no node has confirmed that it took all of the post. Some
	// nodes may have it all the same.
	Lost func()
}

// Report calls f soon, and then about every bulletin.TellEvery, for a Report to post. The reports
// of all parts of a process go into one command to each node. The process has a card while it has
// parts. f is called by one goroutine, must not block, and must not call stop.
//
// Call stop, or close the Quorum, to end it. The stop of the last part takes down the card of the
// process, and waits for that as Post does.
func (b Board) Report(f func() Report) (stop func()) {
	if b.q == nil {
		return func() {}
	}
	r := b.q.Extra(reporterKey{}, func() any {
		return &reporter{b: b, news: make(chan struct{}, 1), parts: make(map[*part]struct{}), me: b.process()}
	}).(*reporter)
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
	r.begins.Do(func() { b.q.Background(r.run) })
	return sync.OnceFunc(func() {
		r.mu.Lock()
		delete(r.parts, p)
		r.mu.Unlock()
		r.takeDown()
	})
}

// reporter posts the reports of all parts of a process.
type reporter struct {
	b      Board
	me     bulletin.Process // the lasting fields of the process's card
	begins sync.Once
	news   chan struct{} // capacity 1; a part was added

	// Only run uses these.
	nodes []bulletin.NodeSeen // as they were seen since
	since int64               // the beginning of the first part, in milliseconds since 1970

	mu    sync.Mutex
	began time.Time // guarded by mu; zero while there are no parts
	parts map[*part]struct{}
}

type reporterKey struct{}

type part struct{ f func() Report }

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
			timer.Reset(bulletin.TellEvery*9/10 + random.N(bulletin.TellEvery/5)) // spreads the processes of one deploy
		}
	}
}

// beat posts once. A report that no node takes is lost, unless its part reports it again: the next
// beat posts what is true then.
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
	r.takeDown() // the last part may have ended during this post
}

// look returns how the process sees the nodes, now and since its first part began.
func (r *reporter) look(began int64) []bulletin.NodeSeen {
	if r.since != began {
		r.since, r.nodes = began, make([]bulletin.NodeSeen, r.b.q.Nodes())
	}
	for i := range r.nodes {
		votes, err := r.b.q.Vote(i)
		why := ""
		if err != nil {
			why = (&redlock.NodeError{Err: err}).ErrorType()
		}
		r.nodes[i].Node = r.b.q.Address(i)
		r.nodes[i].See(votes, why, time.Now().UnixMilli())
	}
	return slices.Clone(r.nodes)
}

// takeDown takes down the card of a process without parts.
func (r *reporter) takeDown() {
	r.mu.Lock()
	none := len(r.parts) == 0
	r.mu.Unlock()
	if none {
		_ = r.b.Post(context.Background(), []bulletin.Card{{Kind: bulletin.Processes, ID: r.me.Process}}) // or the card expires
	}
}

// process returns the lasting fields of this process's card.
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
