package wire

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of entries.
const (
	RosterList    = "list"    // GATE TTL SKEW NAME...: processes have these nodes; says IDENTITY of one
	RosterServer  = "at"      // NAME RUN_ID: a process has found that server; says IDENTITY ADDRESS
	RosterRefused = "refused" // IDENTITY: a process was refused; says CONDITION NAME...
)

// shapes are how many words each kind has at least, with its own, and says.
var shapes = map[string][2]int{RosterList: {5, 1}, RosterServer: {3, 2}, RosterRefused: {2, 2}}

// Entry is what a node keeps of who uses it, in a field of its roster.
type Entry struct {
	Field []string // its kind, and what it is about
	Says  []string
	Age   time.Duration // since that was so
	Life  time.Duration // for how long it is fresh
}

// Roster is what a node keeps, as far as that is fresh.
type Roster struct {
	Entries  []Entry       // in the order of their fields
	Stale    [][2]string   // fields that are not, and their values
	Ahead    []Entry       // those that are dated in the future, which are to be written again
	At       time.Duration // the server's clock
	Reserved bool          // there is something under PREFIX:nodes
}

// maxLife bounds for how long an entry is fresh: a quarantine is shorter, and the roster goes after
// that.
const maxLife = 48 * time.Hour

// Written is the entry's field and value, where it was written at that time of the server's.
func (e *Entry) Written(at time.Duration) [2]string {
	return [2]string{rosterText(e.Field), strconv.FormatInt(at.Milliseconds(), 10) + " " + e.rest()}
}

func (e *Entry) rest() string { return ms(e.Life) + " " + rosterText(e.Says) }

// RosterWords are the arguments of the script, which removes fields that have those values, and
// writes entries.
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

// ms is a duration that is no less in milliseconds.
func ms(d time.Duration) string {
	return strconv.FormatInt(int64((max(d, 0)+time.Millisecond-1)/time.Millisecond), 10)
}

// rosterText makes one text of several, of which none is empty or has a blank there.
func rosterText(all []string) string {
	words := make([]string, len(all))
	for i, text := range all {
		if words[i] = url.QueryEscape(text); text == "" {
			words[i] = "-"
		}
	}
	return strings.Join(words, " ")
}

// fromRosterText are those texts, for people: what is none is a question mark.
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

// RosterKeys are the names of where a node keeps who uses it.
func RosterKeys(prefix string) Keys { return Keys{Lock: prefix + roster, Fences: prefix + reserved} }

// rosterAnswer reads what roster.lua returns.
func rosterAnswer(_ *Call, msg reply) (Answer, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) != 3 {
		return Answer{}, msg.unexpected()
	}
	text, err := parts[0].ToString()
	at, ok := rosterNumber(text)
	fields, wrong := parts[1].AsStrMap()
	there, odd := parts[2].AsInt64()
	if err != nil || !ok || wrong != nil || odd != nil {
		return Answer{}, msg.unexpected()
	}
	r := ParseRoster(fields, at)
	r.Reserved = there != 0
	return Answer{Verdict: OK}.With(More{Roster: r}), nil
}

func rosterNumber(digits string) (time.Duration, bool) {
	n, err := strconv.ParseInt(digits, 10, 64)
	return time.Duration(n) * time.Millisecond, err == nil && isDigits(digits) && n < int64(NoExpiry/time.Millisecond)
}

// ParseRoster reads the fields of a roster at a time of its server. An entry of the future was
// written before that clock was set back, at an unknown time: it is fresh, and dated anew by who
// writes.
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
