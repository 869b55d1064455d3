package wire

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

// The kinds of entries.
const (
	RosterList    = "list"    // GATE TTL SKEW NAME...: processes have these nodes; says IDENTITY of one
	RosterServer  = "at"      // NAME RUN_ID: a process has found that server; says IDENTITY ADDRESS
	RosterRefused = "refused" // IDENTITY: a process was refused; says CONDITION NAME...
)

// shapes has two numbers for each kind: the least number of words of its field, the kind included,
// and the least number of words that it says.
var shapes = map[string][2]int{RosterList: {5, 1}, RosterServer: {3, 2}, RosterRefused: {2, 2}}

// Entry is a field of the roster: what a process has told a node of itself, or of a server.
type Entry struct {
	Field []string // its kind, and the subject
	Says  []string
	Age   time.Duration // how long ago that was so
	Life  time.Duration // for how long it is fresh
}

// Roster is the content of a node's roster.
type Roster struct {
	Entries  []Entry       // the fresh ones, in the order of their fields
	Stale    [][2]string   // fields that are not fresh or have another form, and their values
	Ahead    []Entry       // those of Entries that are dated in the future: they are written again
	At       time.Duration // the server's clock
	Reserved bool          // something is stored under PREFIX:nodes
}

// maxLife bounds for how long an entry is fresh. A quarantine is shorter, and the node drops the
// roster that long after the last write.
const maxLife = 48 * time.Hour

// Written returns the field and the value of the entry, as written at that time of the server's
// clock.
func (e *Entry) Written(at time.Duration) [2]string {
	return [2]string{rosterText(e.Field), strconv.FormatInt(at.Milliseconds(), 10) + " " + e.rest()}
}

func (e *Entry) rest() string { return ms(e.Life) + " " + rosterText(e.Says) }

// RosterWords returns the arguments of roster.lua, which removes the fields that have the given
// values, and writes entries.
func RosterWords(remove [][2]string, write []Entry) []string {
	words := []string{strconv.Itoa(len(remove))}
	for _, r := range remove {
		words = append(words, r[:]...)
	}
	for _, e := range write {
		words = append(words, rosterText(e.Field), e.rest())
	}
	return words
}

// ms returns a duration in milliseconds, rounded up, and 0 for a negative one.
func ms(d time.Duration) string {
	return strconv.FormatInt(int64((max(d, 0)+time.Millisecond-1)/time.Millisecond), 10)
}

// rosterText joins texts with blanks. It escapes each as in a URL, so that none has a blank, and
// writes a dash for an empty one.
func rosterText(all []string) string {
	words := make([]string, len(all))
	for i, text := range all {
		if words[i] = url.QueryEscape(text); text == "" {
			words[i] = "-"
		}
	}
	return strings.Join(words, " ")
}

// fromRosterText splits such a text, for people. A word that is empty or wrongly escaped becomes a
// question mark, and so does each control character. A long word is cut.
func fromRosterText(text string) []string {
	words := strings.Split(text, " ")
	for i, word := range words {
		said, err := url.QueryUnescape(word)
		if err != nil || word == "-" {
			said = "?"
		}
		words[i] = fmt.Sprintf("%.*s", maxSaid, strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f || r == '\ufffd' {
				return '?'
			}
			return r
		}, said))
	}
	return words
}

// RosterKeys returns the names of a node's roster (Lock), and of the reserved key (Fences). The
// script roster.lua makes the other names that it uses.
func RosterKeys(prefix string) Keys { return Keys{Lock: prefix + roster, Fences: prefix + reserved} }

// rosterAnswer reads what roster.lua returns.
func rosterAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	parts := r.parts(msg, 4)
	m := More{Trial: trialIn(r.parts(parts[0], len(Trials)))}
	if m.Unkept = parts[2].Error(); m.Unkept != nil {
		return Answer{Verdict: OK}.With(m)
	}
	at, ok := rosterNumber(r.text(parts[1]))
	fields, err := parts[2].AsStrMap()
	r.expect(ok && err == nil, msg)
	m.Roster = ParseRoster(fields, at)
	m.Roster.Reserved = r.number(parts[3]) != 0
	return Answer{Verdict: OK}.With(m)
}

func rosterNumber(digits string) (time.Duration, bool) {
	n, err := strconv.ParseInt(digits, 10, 64)
	return time.Duration(n) * time.Millisecond, err == nil && isDigits(digits) && n < int64(NoExpiry/time.Millisecond)
}

// ParseRoster reads the fields of a roster; now is the server's clock. An entry that is dated in
// the future was written before that clock was set back, at an unknown time. It is fresh, and the
// next process that writes dates it anew.
func ParseRoster(fields map[string]string, now time.Duration) *Roster {
	r := &Roster{At: now}
	for field, value := range fields {
		words := append(strings.SplitN(value, " ", 3), "", "", "")
		at, ok := rosterNumber(words[0])
		life, limited := rosterNumber(words[1])
		e := Entry{fromRosterText(field), fromRosterText(words[2]), max(now-at, 0), life}
		least := shapes[e.Field[0]]
		if !ok || !limited || now-at > min(life, maxLife) || least[0] == 0 || len(e.Field) < least[0] || len(e.Says) < least[1] {
			r.Stale = append(r.Stale, [2]string{field, value})
			continue
		}
		if r.Entries = append(r.Entries, e); at > now {
			r.Ahead = append(r.Ahead, e)
		}
	}
	slices.SortFunc(r.Entries, func(a, b Entry) int { return slices.Compare(a.Field, b.Field) })
	return r
}
