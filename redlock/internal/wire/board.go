package wire

import (
	"strconv"
	"strings"
	"time"
)

// Bounds of what processes tell people, in bytes and in numbers.
const (
	MaxCard    = 4096
	MaxEntry   = 2048
	MaxCardID  = 2048
	MaxPage    = 100 // of cards, and
	MaxJournal = 400 // of entries, that one answer has: together less than a reply may have
	maxClass   = 64
)

// Card is what a process puts up on the nodes for people to see.
type Card struct {
	Kind, ID, Text string
	Lifetime       time.Duration // how long it stays; zero takes it down; negative for an id that was read, and is no card
	Age            time.Duration // of one that was read: by the clock of the server
}

// Entry is one of a journal, see lib/enter.lua.
type Entry struct {
	Journal string // its kind, and behind a slash whose it is
	At      int64  // in milliseconds since 1970, by its writer
	Count   int64  // of those of its class that came one after the other; at least 1
	Class   string // without blanks; empty for one that stays by itself
	Text    string
	Most    int           // that the journal has at most, with it
	Keep    time.Duration // for how long the journal is kept after it
}

// Board names what is kept for people under a prefix.
type Board struct{ prefix string }

// NewBoard makes the names of a prefix.
func NewBoard(prefix string) Board { return Board{prefix} }

// cards appends the keys of a kind of cards.
func (b Board) cards(kind string, to []string) []string {
	key := b.prefix + cards + ":" + kind
	return append(to, key+":ids", key+":expiries", key+":texts")
}

func (b Board) journal(name string) string { return b.prefix + journals + ":" + name }

// Channel is where entries of journals of a kind are published.
func (b Board) Channel(kind string) string { return b.prefix + ":news:" + kind }

// entryKind is the kind of a journal.
func entryKind(journal string) string {
	kind, _, _ := strings.Cut(journal, "/")
	return kind
}

// Notice is keys and arguments of what is told.
type Notice struct{ keys, args []string }

// AddCard adds a card.
func (b Board) AddCard(n *Notice, c *Card) {
	n.keys = b.cards(c.Kind, n.keys)
	n.args = append(n.args, "card", c.ID, strconv.FormatInt(c.Lifetime.Milliseconds(), 10), c.Text)
}

// AddEntry adds an entry.
func (b Board) AddEntry(n *Notice, e *Entry) {
	n.keys = append(n.keys, b.journal(e.Journal))
	n.args = append(n.args, "entry")
	n.args = b.entryArgs(e, n.args)
}

// entryArgs appends what lib/enter.lua takes behind the journal.
func (b Board) entryArgs(e *Entry, to []string) []string {
	return append(to, strconv.FormatInt(e.At, 10), strconv.FormatInt(e.Count, 10), classWord(e.Class), e.Text,
		strconv.Itoa(e.Most), strconv.FormatInt(e.Keep.Milliseconds(), 10), b.Channel(entryKind(e.Journal)))
}

// ReadCards is what a call for cards asks.
func (b Board) ReadCards(kind, after string, most int) *Notice {
	return &Notice{keys: b.cards(kind, nil), args: []string{"(" + after, strconv.Itoa(most)}}
}

// ReadJournal is what a call for entries asks.
func (b Board) ReadJournal(name string, most int) *Notice {
	return &Notice{keys: []string{b.journal(name)}, args: []string{strconv.Itoa(most)}}
}

// Told is what a node has of what is asked for.
type Told struct {
	Cards   []Card
	Entries []Entry
}

// Last is an entry that a release makes.
type Last struct {
	Board Board
	Entry Entry
}

func classWord(class string) string {
	if class == "" {
		return "-"
	}
	return class
}

func noticeKeys(c *Call, to []string) []string { return append(to, c.Notice.keys...) }

func noticeArgs(c *Call, _ *Target, to []string) []string { return append(to, c.Notice.args...) }

// ParseEntry reads an entry; false for a text that is none, or of another version.
func ParseEntry(text string) (e Entry, ok bool) {
	fields := strings.SplitN(text, " ", 5)
	if len(fields) != 5 || fields[0] != "1" || len(fields[3]) > maxClass || len(fields[4]) > MaxEntry {
		return Entry{}, false
	}
	at, ok1 := decimal(fields[1])
	count, ok2 := decimal(fields[2])
	if !ok1 || !ok2 || count < 1 || fields[3] == "" {
		return Entry{}, false
	}
	e = Entry{At: at, Count: count, Class: fields[3], Text: fields[4]}
	if e.Class == "-" {
		e.Class = ""
	}
	return e, true
}

// cardsAnswer reads what cards.lua returns. What is no card is left out.
func cardsAnswer(c *Call, msg reply) (Answer, error) {
	parts, err := msg.AsStrSlice()
	if err != nil || len(parts) == 0 || len(parts)%2 != 1 {
		return Answer{}, msg.unexpected()
	}
	now, ok := decimal(parts[0])
	if !ok {
		return Answer{}, msg.unexpected()
	}
	told := &Told{}
	for i := 1; i < len(parts) && len(told.Cards) < MaxPage; i += 2 {
		id, text := parts[i], parts[i+1]
		version, rest, _ := strings.Cut(text, " ")
		at, rest, ok := strings.Cut(rest, " ")
		written, ok2 := decimal(at)
		if len(id) > MaxCardID {
			continue
		}
		if version != "1" || !ok || !ok2 || len(rest) > MaxCard {
			told.Cards = append(told.Cards, Card{ID: id, Lifetime: -1}) // a page goes on behind it
			continue
		}
		told.Cards = append(told.Cards, Card{ID: id, Text: rest, Age: time.Duration(min(max(now-written, 0), maxAge)) * time.Millisecond})
	}
	return Answer{Verdict: OK}.With(More{Told: told}), nil
}

// maxAge is a century in milliseconds.
const maxAge = 100 * 366 * 24 * 3600 * 1000

// journalAnswer reads what journal.lua returns. What is no entry is left out.
func journalAnswer(_ *Call, msg reply) (Answer, error) {
	texts, err := msg.AsStrSlice()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	told := &Told{}
	for _, text := range texts[:min(len(texts), MaxJournal)] {
		if e, ok := ParseEntry(text); ok {
			told.Entries = append(told.Entries, e)
		}
	}
	return Answer{Verdict: OK}.With(More{Told: told}), nil
}
