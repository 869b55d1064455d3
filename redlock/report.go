package redlock

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// What a process tells regularly.
const (
	// ReportEvery is how often.
	ReportEvery = 10 * time.Second
	// ReportLifetime is how long the card of a process stays that tells nothing any more.
	ReportLifetime = 3 * ReportEvery
	// reportSoon is after how long a process tells what it has to tell newly.
	reportSoon = 500 * time.Millisecond
	// ProcessKind is the kind of the cards of processes. Each is a JSON object: v is 1, process is
	// its random name, identity is Quorum.Identity, host, pid, program and version say what it is,
	// began is when it began to tell, nodes is how it sees each node ({node, votes, why}), and the
	// rest is what its parts say, see Report. cut is true where not all fitted.
	ProcessKind = "processes"
)

// Report is what a part of a process has to tell.
type Report struct {
	Cards   []Card
	Entries []Entry
	// About is for the card of the process, which has one if this is not nil: lists of what
	// encoding/json can marshal, by name. Lists of the same name from several parts are joined.
	About map[string][]any
	// Lost, if it is not nil, is called if no node has answered that it took all of that. Some may
	// have it all the same.
	Lost func()
}

// Report has f asked, about every ReportEvery and soon at first, for what to post; all parts of a
// process go into one command to each node. While one of them has something to say about it, the
// process has a card of the kind ProcessKind. f is called by one goroutine, must not block, and
// must not call stop.
//
// Call stop, or close the Quorum, to end it; with the last one the process takes down its card.
func (b Board) Report(f func() Report) (stop func()) {
	if b.q.none() {
		return func() {}
	}
	return b.q.reporter.add(f)
}

// reporter posts what the parts of a process have to tell.
type reporter struct {
	q       *Quorum
	process string
	runs    bool          // guarded by q.mu
	news    chan struct{} // capacity 1; there is a new part

	shown bool // of the goroutine that reports: the process has a card

	mu    sync.Mutex
	began time.Time // guarded by mu; zero while there are no parts
	parts map[*part]struct{}
	said  map[int]string // guarded by mu; why a node refuses what is told, as it was logged
}

type part struct{ f func() Report }

func newReporter(q *Quorum) *reporter {
	return &reporter{q: q, process: wire.NewProcess(), news: make(chan struct{}, 1), parts: make(map[*part]struct{}), said: make(map[int]string)}
}

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
	r.q.mu.Lock()
	if !r.runs && !r.q.closed {
		r.runs = true
		r.q.work.Go(r.run)
	}
	r.q.mu.Unlock()
	return sync.OnceFunc(func() {
		r.mu.Lock()
		delete(r.parts, p)
		last := len(r.parts) == 0
		r.mu.Unlock()
		if last {
			r.takeDown()
		}
	})
}

// run posts until the Quorum is closed.
func (r *reporter) run() {
	timer := time.NewTimer(reportSoon)
	defer timer.Stop()
	for {
		select {
		case <-r.q.done:
			return
		case <-r.news:
			timer.Reset(reportSoon)
		case <-timer.C:
			r.beat()
			timer.Reset(jitter(ReportEvery, reportJitter))
		}
	}
}

// reportJitter spreads the processes that were started together.
const reportJitter = 0.1

// beat posts once. What no node takes is lost, unless the part that said it says it again: the
// next beat tells what is then.
func (r *reporter) beat() {
	r.mu.Lock()
	parts, began := slices.Collect(maps.Keys(r.parts)), r.began
	r.mu.Unlock()
	if len(parts) == 0 {
		return
	}
	var about map[string][]any
	var cards []Card
	var entries []Entry
	var lost []func()
	for _, p := range parts {
		said := p.f()
		if said.Lost != nil {
			lost = append(lost, said.Lost)
		}
		cards, entries = append(cards, said.Cards...), append(entries, said.Entries...)
		if said.About != nil && about == nil {
			about = make(map[string][]any)
		}
		for name, list := range said.About {
			about[name] = append(about[name], list...)
		}
	}
	switch {
	case about != nil:
		cards = append(cards, Card{Kind: ProcessKind, ID: r.process, Text: r.card(began, about), Lifetime: ReportLifetime})
	case r.shown:
		cards = append(cards, Card{Kind: ProcessKind, ID: r.process})
	}
	r.shown = about != nil
	if _, err := r.q.Board().Post(context.Background(), cards, entries); err != nil {
		r.q.cfg.logger.DebugContext(context.Background(), "redlock: what this process tells people was not heard", "error", err)
		for _, f := range lost {
			f()
		}
	}
	if r.none() {
		r.takeDown() // the last part has ended meanwhile, and this may have come after
	}
}

func (r *reporter) none() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.parts) == 0
}

// refused logs a line for each node that begins to refuse what is told, or refuses it for another
// reason, and one when it takes it again. That a node does not answer is told elsewhere.
func (r *reporter) refused(replies []vote.Reply) {
	log, ctx := r.q.cfg.logger, context.Background()
	for i := range replies {
		rep, m := &replies[i], r.q.nodes[i]
		var why *NodeError
		switch {
		case rep.Verdict == wire.OK:
		case rep.Verdict != wire.Failed || !wire.IsServerError(rep.Err):
			continue
		default:
			why = m.failure(OpPost, rep.Err)
		}
		switch news := r.says(i, why); {
		case !news:
		case why == nil:
			log.InfoContext(ctx, "redlock: node takes again what processes tell people", "node", m.addr)
		default:
			log.WarnContext(ctx, "redlock: node does not take what processes tell people: package admin lacks it", "node", m.addr, "error", why)
		}
	}
}

// says notes why a node refuses what is told, nil for that it does not, and reports whether that is
// news.
func (r *reporter) says(node int, why *NodeError) (news bool) {
	word := ""
	if why != nil {
		word = why.ErrorType()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.said[node]
	r.said[node] = word
	return was != word
}

// takeDown takes the card of a process down that ends. It is queued when takeDown returns.
func (r *reporter) takeDown() {
	var n wire.Notice
	wire.NewBoard(r.q.cfg.prefix).AddCard(&n, &wire.Card{Kind: ProcessKind, ID: r.process})
	rd := r.q.newOperation(OpPost, 1)
	at := r.q.question(&r.q.noKey)
	call := at.call(wire.Post)
	call.Notice = &n
	if r.q.begin() {
		defer r.q.rounds.Done()
		rd.send(context.Background(), at, call, r.q.clock.Now().Add(r.q.cfg.timeout(r.q.cfg.lease.ttl)), r.q.mayTell)
	}
}

// nodeSeen is how a process sees a node.
type nodeSeen struct {
	Node  string `json:"node"`
	Votes bool   `json:"votes"`
	Why   string `json:"why,omitempty"` // an error.type
}

// card is the text of the process's card. Where it is too long, the longest lists are cut.
func (r *reporter) card(began time.Time, about map[string][]any) string {
	host, _ := os.Hostname()
	program, version := programOf(debug.ReadBuildInfo())
	card := map[string]any{
		"v": 1, "process": r.process, "identity": r.q.Identity(), "host": host, "pid": os.Getpid(),
		"program": program, "version": version, "began": began.UnixMilli(),
	}
	var seen []any
	for _, m := range r.q.nodes {
		s := nodeSeen{Node: m.addr, Votes: true}
		if err := cmp.Or(m.unanswered(), m.votes()); err != nil {
			s.Votes, s.Why = false, (&NodeError{Err: err}).ErrorType()
		}
		seen = append(seen, s)
	}
	lists := map[string][]any{"nodes": seen}
	for name, list := range about {
		if _, taken := card[name]; !taken && name != "cut" {
			lists[name] = append(lists[name], list...)
		}
	}
	for {
		for name, list := range lists {
			card[name] = list
		}
		text, err := json.Marshal(card)
		if err == nil && len(text) <= MaxCardText {
			return strings.ToValidUTF8(string(text), "?")
		}
		longest := ""
		for name, list := range lists {
			if longest == "" || len(list) > len(lists[longest]) || len(list) == len(lists[longest]) && name < longest {
				longest = name
			}
		}
		if len(lists[longest]) == 0 {
			return `{"v":1,"cut":true}`
		}
		card["cut"] = true
		lists[longest] = lists[longest][:len(lists[longest])/2]
	}
}

// programOf names the program of a process and its version, or its revision.
func programOf(info *debug.BuildInfo, ok bool) (program, version string) {
	if !ok {
		return "", ""
	}
	if program, version = info.Path, info.Main.Version; version == "" || version == "(devel)" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				version = s.Value
			}
		}
	}
	return program, version
}
