package board

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/bulletin"
)

// Answers of nodes are not trusted to agree, to be in order, or to be written by this library.

// page is an answer of a node about cards.
type page struct {
	cards []bulletin.Card
	// last is the last id of a full page; what the node has after it is not known. There may be no
	// valid card with that id.
	last string
}

// newPage parses the answer of cards.lua, which has at most so many cards.
func newPage(kind string, texts []string, most int) (p page) {
	if len(texts) == 0 {
		return p
	}
	now, _ := number(texts[0])
	for _, text := range texts[1:min(len(texts), most+1)] {
		id, text, _ := strings.Cut(text, "\x00")
		id = unescaped.Replace(id)
		f := strings.SplitN(text, " ", 4)
		if p.last = id; len(f) != 4 || f[0] != "1" || len(f[3]) > bulletin.MaxCardText || len(id) > bulletin.MaxID {
			continue
		}
		written, ok := number(f[1])
		expires, ok2 := number(f[2])
		if ok && ok2 && expires > now {
			age := time.Duration(min(max(now-written, 0), maxAge)) * time.Millisecond
			p.cards = append(p.cards, bulletin.Card{Kind: kind, ID: id, Text: f[3], Age: age})
		}
	}
	if len(texts) <= most {
		p.last = ""
	}
	return p
}

// A zero byte ends an id on the nodes. Within an id it is written as two bytes, which keeps the
// order of ids.
var (
	escaped   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	unescaped = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

// maxAge is a century in milliseconds.
const maxAge = 100 * 366 * 24 * 3600 * 1000

// number parses a number of a script: digits only, and below 2^53.
func number(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 53)
	return int64(n), err == nil
}

// youngest returns the youngest version of each card of all pages, by id.
func youngest(pages []page) map[string]bulletin.Card {
	all := make(map[string]bulletin.Card)
	for _, p := range pages {
		for _, c := range p.cards {
			was, known := all[c.ID]
			if known && was.Age <= c.Age {
				c = was
			}
			c.Nodes = was.Nodes + 1
			all[c.ID] = c
		}
	}
	return all
}

// merge makes one page of at most so many cards, of the pages of nodes after an id. next is the id
// after which to go on, empty if there are no more.
func merge(pages []page, after string, most int) (cards []bulletin.Card, next string) {
	for _, p := range pages {
		// A last id that is not after the one asked for is out of order, and tells nothing.
		if p.last > after && (next == "" || p.last < next) {
			next = p.last
		}
	}
	all := youngest(pages)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if id <= after || next != "" && id > next {
			continue
		}
		if cards = append(cards, all[id]); len(cards) == most {
			return cards, id
		}
	}
	return cards, next
}

// parse parses an entry, see post.lua; false for invalid text.
func parse(journal, text string) (bulletin.Entry, bool) {
	f := strings.SplitN(text, " ", 5)
	if len(f) != 5 || f[0] != "1" || f[3] == "" || len(f[3]) > bulletin.MaxClass || len(f[4]) > bulletin.MaxEntryText {
		return bulletin.Entry{}, false
	}
	at, ok := number(f[1])
	count, ok2 := number(f[2])
	if !ok || !ok2 || count < 1 {
		return bulletin.Entry{}, false
	}
	e := bulletin.Entry{Journal: journal, Text: f[4], At: time.UnixMilli(at), Count: int(min(count, 1<<31-1)), Nodes: 1}
	if f[3] != noClass {
		e.Class = f[3]
	}
	return e, true
}

// noClass is the class of entries that never replace another.
const noClass = "-"

// same identifies an entry across nodes. The count is not part of it, because each node counts by
// itself.
type same struct {
	at          int64
	class, text string
}

func sameOf(e bulletin.Entry) same { return same{e.At.UnixMilli(), e.Class, e.Text} }

// cutList cuts the entries of one journal, at most so many, off the answer of journal.lua.
func cutList(texts []string, most int) (list, rest []string) {
	if len(texts) == 0 {
		return nil, nil
	}
	n, ok := number(texts[0])
	if texts = texts[1:]; !ok || n > int64(min(len(texts), most)) {
		return nil, nil
	}
	return texts[:n], texts[n:]
}

// entries merges the lists of several nodes into one: the newest entries, each once.
func entries(journal string, lists [][]string, most int) []bulletin.Entry {
	all := make(map[same]bulletin.Entry)
	for _, texts := range lists {
		for _, text := range texts {
			e, ok := parse(journal, text)
			if !ok {
				continue
			}
			was := all[sameOf(e)]
			e.Count, e.Nodes = max(e.Count, was.Count), was.Nodes+1
			all[sameOf(e)] = e
		}
	}
	list := slices.SortedFunc(maps.Values(all), func(x, y bulletin.Entry) int {
		return cmp.Or(y.At.Compare(x.At), strings.Compare(y.Text, x.Text))
	})
	// Nodes may have counted differently, and some may have missed the last entry of a class.
	list = slices.CompactFunc(list, func(newer, older bulletin.Entry) bool {
		return newer.Class != "" && newer.Class == older.Class
	})
	return list[:min(len(list), most)]
}
