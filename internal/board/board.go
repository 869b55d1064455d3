// Package board publishes what the processes of a prefix tell people, on the nodes: cards, which
// say what is now, and journals, which say what was. Package bulletin has the formats.
//
// It is best effort. Each node has what it has heard, and readers merge the nodes' answers. No
// decision depends on the board. Any user who may write to the nodes may write anything there.
package board

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

//go:embed post.lua
var postLua string

//go:embed cards.lua
var cardsLua string

//go:embed journal.lua
var journalLua string

var (
	postScript    = bridge.NewUngatedScript(postLua)
	cardsScript   = bridge.NewUngatedScript(cardsLua)
	journalScript = bridge.NewUngatedScript(journalLua)
)

// Board is the board of a Quorum's prefix. It is safe for concurrent use.
type Board struct {
	q      bridge.Quorum // nil for a nil or zero Quorum
	quorum *redlock.Quorum
}

// Of returns the board of a Quorum.
func Of(q *redlock.Quorum) Board { return Board{bridge.Of(q), q} }

// The braces keep these names apart from the names of every key and of every other prefix.

func (b Board) cards(kind string) string   { return b.q.Prefix() + ":{}:cards:" + kind }
func (b Board) journal(name string) string { return b.q.Prefix() + ":{}:journal:" + name }
func (b Board) channel(kind string) string { return b.q.Prefix() + ":news:" + kind }

// mostAtOnce bounds the cards and entries of one command. A server does nothing else meanwhile.
const mostAtOnce = 64

// Post puts up cards and enters entries on all nodes that this process may use, also on nodes in
// quarantine. Each command, of up to 64 cards and entries, waits for the answers, for the node
// timeout at most.
//
// Errors: *redlock.QuorumError if no node took a command, redlock.ErrClosed, or ctx's own error.
// After an error some nodes may have some of it.
func (b Board) Post(ctx context.Context, cards []bulletin.Card, entries ...bulletin.Entry) error {
	if b.q == nil {
		return redlock.ErrClosed
	}
	type posted struct {
		key  string
		args []string
	}
	var all []posted
	for _, c := range cards {
		all = append(all, posted{b.cards(c.Kind), []string{"card", escaped.Replace(c.ID), milliseconds(max(c.Lifetime, 0)), c.Text}})
	}
	for _, e := range entries {
		if e.At.IsZero() {
			e.At = b.q.Time()
		}
		kind, _, _ := strings.Cut(e.Journal, "/")
		all = append(all, posted{b.journal(e.Journal), []string{"entry", strconv.FormatInt(max(e.At.UnixMilli(), 0), 10), strconv.Itoa(max(e.Count, 1)),
			cmp.Or(e.Class, noClass), e.Text, strconv.Itoa(e.Most), milliseconds(max(e.Keep, time.Millisecond)), b.channel(kind)}})
	}
	for some := range slices.Chunk(all, mostAtOnce) {
		call := &bridge.Call{Script: postScript}
		for _, p := range some {
			call.Keys, call.Args = append(call.Keys, p.key), append(call.Args, p.args...)
		}
		if _, err := b.ask(ctx, "post", false, call); err != nil {
			return err
		}
	}
	return nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// pageSize is the number of cards in one answer.
const pageSize = 50

// Cards reads the cards of a kind, in the order of their ids. It reads a page of 50 at a time, and
// the next page only if the caller goes on. If nodes have several versions of a card, it yields the
// youngest. A node that has just become unreachable costs the node timeout once. An error ends the
// sequence: *redlock.QuorumError if no node answered, redlock.ErrClosed, or ctx's own.
func (b Board) Cards(ctx context.Context, kind string) iter.Seq2[bulletin.Card, error] {
	return func(yield func(bulletin.Card, error) bool) {
		for last, from := "", "-"; ; {
			pages, err := b.pages(ctx, kind, from, "+", pageSize)
			if err != nil {
				yield(bulletin.Card{}, err)
				return
			}
			cards, next := merge(pages, last, pageSize)
			for _, c := range cards {
				if !yield(c, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			last, from = next, "("+escaped.Replace(next)+"\x01" // after every card with that id
		}
	}
}

// Card reads one card. found is false if no node that answered has the card. Errors are those of
// Cards.
func (b Board) Card(ctx context.Context, kind, id string) (card bulletin.Card, found bool, err error) {
	id = escaped.Replace(id)
	pages, err := b.pages(ctx, kind, "["+id+"\x00", "("+id+"\x01", 1)
	for _, c := range youngest(pages) {
		return c, true, nil
	}
	return bulletin.Card{}, false, err
}

// pages reads the cards of each node between two bounds, as ZRANGEBYLEX takes them.
func (b Board) pages(ctx context.Context, kind, from, to string, most int) (pages []page, err error) {
	if b.q == nil {
		return nil, redlock.ErrClosed
	}
	answers, err := b.ask(ctx, "observe", true, &bridge.Call{
		Script: cardsScript, Keys: []string{b.cards(kind)}, Args: []string{from, to, strconv.Itoa(most)},
	})
	for _, texts := range answers {
		pages = append(pages, newPage(kind, texts, most))
	}
	return pages, err
}

// Journal reads the newest entries of a journal, the newest first, at most so many. Errors are
// those of Cards.
func (b Board) Journal(ctx context.Context, name string, most int) ([]bulletin.Entry, error) {
	all, err := b.Journals(ctx, most, name)
	return all[0], err
}

// Journals reads several journals at once, each as Journal does, with MaxEntries entries at most in
// all.
func (b Board) Journals(ctx context.Context, most int, names ...string) ([][]bulletin.Entry, error) {
	all := make([][]bulletin.Entry, len(names))
	if b.q == nil {
		return all, redlock.ErrClosed
	}
	most = max(min(most, bulletin.MaxEntries/len(names)), 1)
	call := &bridge.Call{Script: journalScript, Args: []string{strconv.Itoa(most)}}
	for _, name := range names {
		call.Keys = append(call.Keys, b.journal(name))
	}
	answers, err := b.ask(ctx, "observe", true, call)
	lists := make([][][]string, len(names)) // by journal: the entries of each node
	for _, texts := range answers {
		for i := range names {
			var list []string
			list, texts = cutList(texts, most)
			lists[i] = append(lists[i], list)
		}
	}
	for i, name := range names {
		all[i] = entries(name, lists[i], most)
	}
	return all, err
}

// ask asks all nodes and returns the answers of those that answer. It fails if none does.
func (b Board) ask(ctx context.Context, op string, reads bool, call *bridge.Call) (said [][]string, err error) {
	heard, err := b.q.Ask(ctx, &bridge.Question{Op: op, Reads: reads, Call: func(int) *bridge.Call { return call }})
	if err != nil {
		return nil, err
	}
	answers := heard()
	e := &redlock.QuorumError{Op: redlock.Op(op), Need: 1, Nodes: len(answers)}
	for _, a := range answers {
		if a.Texts != nil {
			said = append(said, a.Texts)
		} else if failed, is := errors.AsType[*redlock.NodeError](a.Err); is {
			e.Errs = append(e.Errs, failed)
		}
	}
	if len(said) == 0 {
		return nil, e
	}
	return said, nil
}
