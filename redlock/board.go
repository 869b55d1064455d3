package redlock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/board"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Board is what processes of a prefix tell people, on the nodes: cards, which say what is now, and
// journals, which say what was. It is best effort. Each node has what it has heard, readers merge
// it, and nothing that decides about a lease reads any of it. Whoever may write to the nodes may
// write anything there.
//
// Packages scheduler, elector and admin use it; a program may have kinds of its own. A Board is
// safe for concurrent use.
type Board struct{ q *Quorum }

// Board returns the board of the Quorum's prefix.
func (q *Quorum) Board() Board { return Board{q} }

// Bounds of what is told, in bytes and in numbers. A card or an entry that is longer is refused.
const (
	MaxCardText  = wire.MaxCard
	MaxCardID    = wire.MaxCardID
	MaxEntryText = wire.MaxEntry
	// MaxCards and MaxEntries bound what one call of Cards and of Journal returns.
	MaxCards   = wire.MaxPage
	MaxEntries = wire.MaxJournal
)

// Card is what a process says of itself, or of what it knows, until it expires.
type Card struct {
	Kind     string        // lower case letters and hyphens
	ID       string        // whose it is; one of the same kind and id takes its place
	Text     string        // UTF-8
	Lifetime time.Duration // after which it expires; zero or less takes it down

	Age   time.Duration // of one that was read: since it was put up on the node that heard it last
	Nodes int           // that have it
}

// Entry is what has happened, in a journal.
type Entry struct {
	// Journal is the kind, in lower case letters and hyphens, or the kind, a slash, and whose it
	// is.
	Journal string
	Text    string // UTF-8
	// Class has an entry take the place of the newest one if that is of the same class, and add to
	// its count. Up to 64 bytes without blanks. Empty for none.
	Class string
	Most  int           // entries that the journal keeps; from 1 to MaxEntries
	Keep  time.Duration // for how long the journal is kept when nothing is added any more

	At    time.Time // when it was written, by the median of the servers' clocks as its writer knew it
	Count int       // how many of its class followed one another; to write, zero is 1
	Nodes int       // that have it
}

func isKind(kind string) bool {
	return kind != "" && len(kind) <= 32 && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz-") == ""
}

func (c *Card) check() error {
	switch {
	case !isKind(c.Kind):
		return &OptionError{"Card", fmt.Sprintf("the kind %.40q is not of lower case letters", c.Kind)}
	case c.ID == "" || len(c.ID) > MaxCardID || !utf8.ValidString(c.ID):
		return &OptionError{"Card", fmt.Sprintf("the id has %d bytes, and must have 1 to %d of UTF-8", len(c.ID), MaxCardID)}
	case len(c.Text) > MaxCardText || !utf8.ValidString(c.Text):
		return &OptionError{"Card", fmt.Sprintf("the text has %d bytes, and must have at most %d of UTF-8", len(c.Text), MaxCardText)}
	case c.Lifetime > MaxKeep:
		return &OptionError{"Card", fmt.Sprintf("the lifetime of %v is above %v", c.Lifetime, MaxKeep)}
	}
	return nil
}

func (e *Entry) check() error {
	kind, _, _ := strings.Cut(e.Journal, "/")
	switch {
	case !isKind(kind) || len(e.Journal) > MaxCardID || !utf8.ValidString(e.Journal):
		return &OptionError{"Entry", fmt.Sprintf("the journal %.40q is no kind, or none with a name of UTF-8 behind a slash", e.Journal)}
	case len(e.Text) > MaxEntryText || !utf8.ValidString(e.Text):
		return &OptionError{"Entry", fmt.Sprintf("the text has %d bytes, and must have at most %d of UTF-8", len(e.Text), MaxEntryText)}
	case len(e.Class) > 64 || e.Class == "-" || strings.ContainsFunc(e.Class, func(r rune) bool { return r <= ' ' || r > '~' }):
		return &OptionError{"Entry", fmt.Sprintf("the class %.80q is not of at most 64 visible ASCII characters", e.Class)}
	case e.Most < 1 || e.Most > MaxEntries:
		return &OptionError{"Entry", fmt.Sprintf("a journal of %d entries is not one of 1 to %d", e.Most, MaxEntries)}
	case e.Keep <= 0 || e.Keep > MaxKeep:
		return &OptionError{"Entry", fmt.Sprintf("a journal is not kept for %v", e.Keep)}
	}
	return nil
}

// now is the median of the servers' clocks, at most, or this process's clock where that is not
// known.
func (q *Quorum) now() time.Time {
	if b, ok := q.clocks.Time(q.clock.Now()); ok {
		return time.Unix(0, int64(b.Hi))
	}
	return time.Now()
}

func (e *Entry) wire(q *Quorum) wire.Entry {
	at := e.At
	if at.IsZero() {
		at = q.now()
	}
	return wire.Entry{
		Journal: e.Journal, At: max(at.UnixMilli(), 0), Count: int64(max(e.Count, 1)), Class: e.Class, Text: e.Text,
		Most: e.Most, Keep: max(e.Keep, time.Millisecond),
	}
}

// maxNotice is how many cards and entries one command has at most. A server does nothing else
// meanwhile.
const maxNotice = 64

// Post puts up cards and enters entries, on all nodes that this process may use: also on those that
// are in quarantine. It waits for their answers, at most the node timeout, and returns how many
// have taken all of it.
//
// Errors: *OptionError, *QuorumError if no node took it, ErrClosed, or ctx's own error; then some
// nodes may have it.
func (b Board) Post(ctx context.Context, cards []Card, entries []Entry) (nodes int, err error) {
	if b.q.none() {
		return 0, ErrClosed
	}
	if err := checkContext(ctx); err != nil {
		return 0, err
	}
	notices, err := b.notices(cards, entries)
	if err == nil && b.q.isClosed() {
		err = ErrClosed
	}
	if err != nil || len(notices) == 0 {
		return 0, err
	}
	nodes = len(b.q.nodes)
	for _, n := range notices {
		o, err := b.ask(ctx, OpPost, wire.Post, n, b.q.mayTell)
		b.q.reporter.refused(o.Replies)
		if err != nil {
			return 0, err
		}
		nodes = min(nodes, o.Agreed)
	}
	return nodes, nil
}

// notices are the commands that tell it all.
func (b Board) notices(cards []Card, entries []Entry) (notices []*wire.Notice, err error) {
	names := wire.NewBoard(b.q.cfg.prefix)
	size := 0
	last := func() *wire.Notice {
		if size%maxNotice == 0 {
			notices = append(notices, &wire.Notice{})
		}
		size++
		return notices[len(notices)-1]
	}
	for i := range cards {
		c := &cards[i]
		if err := c.check(); err != nil {
			return nil, err
		}
		names.AddCard(last(), &wire.Card{Kind: c.Kind, ID: c.ID, Text: c.Text, Lifetime: max(c.Lifetime, 0)})
	}
	for i := range entries {
		e := &entries[i]
		if err := e.check(); err != nil {
			return nil, err
		}
		w := e.wire(b.q)
		names.AddEntry(last(), &w)
	}
	return notices, nil
}

// mayTell reports whether a process may write to a node what nothing depends on: it was admitted
// there (see membership), although the node may be in quarantine.
func (q *Quorum) mayTell(i int) bool {
	status := q.nodes[i].Status()
	return status.Reason() == nil || status.Until != 0
}

// allHeard reports whether all nodes have answered that can be expected to: one that failed when it
// was last asked anything is not waited for, once another one has answered.
func (q *Quorum) allHeard(replies []vote.Reply) bool {
	for i := range replies {
		if replies[i].Verdict == wire.Pending && q.nodes[i].failing() == nil {
			return false
		}
	}
	return vote.Count(replies, wire.OK) > 0
}

// ask asks the nodes that want selects, and waits for those that can be expected to answer.
func (b Board) ask(ctx context.Context, op Op, as wire.Op, n *wire.Notice, want func(int) bool) (vote.Outcome, error) {
	q := b.q
	if !q.begin() {
		return vote.Outcome{}, ErrClosed
	}
	defer q.rounds.Done()
	rd := q.newOperation(op, 1)
	rd.Decided = q.allHeard
	for i := range q.nodes {
		if want != nil && !want(i) {
			rd.Skip(i, wire.Refused)
		}
	}
	at := q.question(&q.noKey)
	call := at.call(as)
	call.Notice = n
	timeout := q.cfg.timeout(q.cfg.lease.ttl)
	rd.send(ctx, at, call, q.clock.Now().Add(timeout), want)
	if rd.Wait(ctx, max(timeout, clock.AtOnce), &q.waits) != nil {
		return vote.Outcome{}, newContextError(ctx, "", nil)
	}
	o := rd.Outcome()
	if vote.Count(o.Replies, wire.OK) == 0 {
		return o, q.quorumError(op, "", o)
	}
	return o, nil
}

// Cards reads the cards of a kind, in the order of their ids: those after one, at most so many
// (MaxCards). next is where to go on, and empty where there are no more; fewer cards than asked for
// do not tell that. Of a card that nodes have in several versions it returns the youngest. A node
// that has just gone out of reach costs the node timeout, once.
//
// Errors: *OptionError, *QuorumError if no node answered, ErrClosed, or ctx's own error.
func (b Board) Cards(ctx context.Context, kind, after string, most int) (cards []Card, next string, err error) {
	if !isKind(kind) {
		return nil, "", (&Card{Kind: kind}).check()
	}
	most = max(min(most, MaxCards), 1)
	o, err := b.read(ctx, wire.Cards, func(of wire.Board) *wire.Notice { return of.ReadCards(kind, after, most) })
	if err != nil {
		return nil, "", err
	}
	page, next := board.Cards(toldBy(o), after, most)
	for _, c := range page {
		cards = append(cards, Card{Kind: kind, ID: c.ID, Text: c.Text, Age: c.Age, Nodes: c.Nodes})
	}
	return cards, next, nil
}

// Card reads one card. found is false if no node that answered has it. Errors are those of Cards.
func (b Board) Card(ctx context.Context, kind, id string) (card Card, found bool, err error) {
	if id == "" {
		return Card{}, false, (&Card{Kind: kind}).check()
	}
	last := len(id) - 1
	after := id[:last]
	if id[last] > 0 {
		after += string([]byte{id[last] - 1, 0xff}) // no id is between this and the one that is asked for
	}
	cards, _, err := b.Cards(ctx, kind, after, 1)
	if err != nil || len(cards) == 0 || cards[0].ID != id {
		return Card{}, false, err
	}
	return cards[0], true, nil
}

// Journal reads the newest entries of a journal, the newest first, at most so many (MaxEntries).
//
// Errors are those of Cards.
func (b Board) Journal(ctx context.Context, name string, most int) ([]Entry, error) {
	if err := (&Entry{Journal: name, Most: 1, Keep: 1}).check(); err != nil {
		return nil, err
	}
	most = max(min(most, MaxEntries), 1)
	o, err := b.read(ctx, wire.Journal, func(of wire.Board) *wire.Notice { return of.ReadJournal(name, most) })
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, e := range board.Entries(toldBy(o), most) {
		entries = append(entries, newEntry(name, e.Entry, e.Nodes))
	}
	return entries, nil
}

// toldBy is what each node has told.
func toldBy(o vote.Outcome) []*wire.Told {
	all := make([]*wire.Told, len(o.Replies))
	for i, rep := range o.Replies {
		if rep.Verdict == wire.OK {
			all[i] = rep.More().Told
		}
	}
	return all
}

func newEntry(journal string, w wire.Entry, nodes int) Entry {
	return Entry{Journal: journal, Text: w.Text, Class: w.Class, At: time.UnixMilli(w.At), Count: int(min(w.Count, 1<<31-1)), Nodes: nodes}
}

// read asks all nodes for what they have.
func (b Board) read(ctx context.Context, as wire.Op, notice func(wire.Board) *wire.Notice) (vote.Outcome, error) {
	if b.q.none() {
		return vote.Outcome{}, ErrClosed
	}
	if err := checkContext(ctx); err != nil {
		return vote.Outcome{}, err
	}
	return b.ask(ctx, OpObserve, as, notice(wire.NewBoard(b.q.cfg.prefix)), nil)
}

// Hear has f called with each entry that is added to a journal of a kind: once each time that it is
// added, or more often if that is repeated quickly. Its Journal is the kind alone. It returns at
// once, and hears what is added once a node has taken the subscription, on the connection to each
// node that those who wait for leases use too. Entries may be missed, also all of them: what
// matters must be found out by other means. f is called by one goroutine at a time, and must not
// block.
//
// Call stop, or close the Quorum, to end it. A call of f that is under way may go on after that; f
// itself must not close the Quorum.
//
// Errors: *OptionError for a kind that is none, or no f; ErrClosed for a nil Quorum. On one that
// was closed nothing is heard.
func (b Board) Hear(kind string, f func(Entry)) (stop func(), err error) {
	switch {
	case b.q.none():
		return nil, ErrClosed
	case !isKind(kind):
		return nil, (&Card{Kind: kind}).check()
	case f == nil:
		return nil, &OptionError{"Hear", "there is no function that hears the entries"}
	}
	h := board.NewHearer(func(e wire.Entry) { f(newEntry(kind, e, 1)) })
	s := b.q.listener.Subscribe(wire.NewBoard(b.q.cfg.prefix).Channel(kind), h)
	s.Need()
	return sync.OnceFunc(func() {
		s.End()
		h.End()
	}), nil
}

func (l *holding) EndWith(e Entry) error {
	if l.none() {
		return errNoLease
	}
	if e.Journal == "" {
		l.last.Store(nil)
		return nil
	}
	if err := e.check(); err != nil {
		return err
	}
	l.last.Store(&wire.Last{Board: wire.NewBoard(l.q.cfg.prefix), Entry: e.wire(l.q)})
	return nil
}
