package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// List is the nodes of a process, by their names, and what its leases may be like.
type List struct {
	Names  []string // sorted
	Gate   bool     // servers are known by their run_id, see redlock.WithoutRestartGate
	MaxTTL time.Duration
	Skew   time.Duration // of wall clocks
	By     string        // identity of the process that was seen last with it
	Age    time.Duration // since then
}

// Known is a server process that was found under a name.
type Known struct {
	Name, ID string
	By       string        // identity of the process that saw it last
	Age      time.Duration // since then
}

// Refusal is of a process that was refused, or of several with one identity.
type Refusal struct {
	By    string // its identity
	Why   string // a condition
	Names []string
	Age   time.Duration
}

// Roster is what a node knows of the processes that use it, as far as that is fresh.
type Roster struct {
	Lists     []List
	Servers   []Known
	Refused   []Refusal
	Lead      *time.Duration    // of the server's clock over the median, when a process last knew; nil where none did
	At        time.Duration     // the server's clock
	Unwritten string            // why what was to be written could not be; empty where it was
	Values    map[string]string // as they are on the node, by their fields
}

// Note is an entry of a roster, as a process writes it.
type Note struct {
	Field string
	Age   time.Duration // since that was so
	Text  string        // for how long it is fresh, and what it says
}

// Value is the entry's value, where it was written at that time of the server's.
func (n *Note) Value(at time.Duration) string {
	return strconv.FormatInt((at-n.Age.Truncate(time.Millisecond)).Milliseconds(), 10) + " " + n.Text
}

// Print tells lists apart.
func (l *List) Print() string {
	sum := sha256.Sum256([]byte(fmt.Sprint(len(l.Names), " ", l.Gate, " ", rosterTexts(l.Names))))
	return hex.EncodeToString(sum[:8])
}

// Note is the entry of a list. Processes with the same list, and the same TTL and skew, share it.
func (l *List) Note(life time.Duration) Note {
	gate := "gate"
	if !l.Gate {
		gate = "none"
	}
	return Note{Field: strings.Join([]string{noteList, l.Print(), ms(l.MaxTTL), ms(l.Skew)}, " "), Text: rosterLine(life, gate, rosterText(l.By), rosterTexts(l.Names))}
}

// Note is the entry of a server process under its name.
func (k *Known) Note(life time.Duration) Note {
	return Note{Field: strings.Join([]string{noteAt, rosterText(k.Name), k.ID}, " "), Age: k.Age, Text: rosterLine(life, rosterText(k.By))}
}

// Note is the entry of a process that was refused.
func (r *Refusal) Note(life time.Duration) Note {
	return Note{Field: noteRefused + " " + rosterText(r.By), Text: rosterLine(life, r.Why, rosterTexts(r.Names))}
}

// LeadNote is the entry of by how much a server's clock is ahead of the median.
func LeadNote(lead, life time.Duration) Note {
	return Note{Field: noteLead, Text: rosterLine(life, strconv.FormatInt(lead.Milliseconds(), 10))}
}

// The first word of a field.
const (
	noteList    = "list"
	noteAt      = "at"
	noteRefused = "refused"
	noteLead    = "lead"
)

const (
	maxRosterTTL  = 24 * time.Hour
	maxRosterSkew = time.Minute
	maxRosterLead = 100 * 365 * 24 * time.Hour
	rosterDigits  = 15
)

// RosterWords are the arguments of the script, which writes notes and takes others back: a field,
// what was written there and what was there before.
func RosterWords(notes []Note, back [][3]string) []string {
	words := []string{strconv.Itoa(len(notes))}
	for _, n := range notes {
		words = append(words, n.Field, strconv.FormatInt(max(n.Age.Milliseconds(), 0), 10), n.Text)
	}
	for _, b := range back {
		words = append(words, b[:]...)
	}
	return words
}

// ms is a duration that is no less in milliseconds.
func ms(d time.Duration) string {
	return strconv.FormatInt(int64((max(d, 0)+time.Millisecond-1)/time.Millisecond), 10)
}

func rosterLine(life time.Duration, words ...string) string {
	return ms(life) + " " + strings.Join(words, " ")
}

// rosterText makes a text a word: without blanks and commas, not empty.
func rosterText(text string) string {
	if text == "" {
		return "-"
	}
	return url.QueryEscape(text)
}

func rosterTexts(all []string) string {
	words := make([]string, len(all))
	for i, text := range all {
		words[i] = rosterText(text)
	}
	return strings.Join(words, ",")
}

func fromRosterText(word string) string {
	text, err := url.QueryUnescape(word)
	if err != nil || word == "-" {
		return "?"
	}
	return fmt.Sprintf("%.*s", maxSaid, strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return '?'
		}
		return r
	}, text))
}

func fromRosterTexts(word string) (all []string) {
	for part := range strings.SplitSeq(word, ",") {
		all = append(all, fromRosterText(part))
	}
	return all
}

// RosterKeys are the names of where a node keeps who uses it.
func RosterKeys(prefix string) Keys { return Keys{Lock: prefix + rosters} }

func rosterKey(c *Call, to []string) []string { return append(to, c.Keys.Lock) }

func rosterArgs(c *Call, _ *Target, to []string) []string { return append(to, c.Roster...) }

// rosterAnswer reads what roster.lua returns.
func rosterAnswer(_ *Call, msg reply) (Answer, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) != 3 {
		return Answer{}, msg.unexpected()
	}
	clock, err := parts[0].ToString()
	at, ok := rosterNumber(clock)
	if err != nil || !ok {
		return Answer{}, msg.unexpected()
	}
	fields, err := parts[1].AsStrSlice()
	if err != nil || len(fields)%2 != 0 {
		return Answer{}, msg.unexpected()
	}
	unwritten, err := parts[2].ToString()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	values := make(map[string]string, len(fields)/2)
	for i := 0; i < len(fields); i += 2 {
		values[fields[i]] = fields[i+1]
	}
	r := ParseRoster(values, at)
	r.Unwritten = unwritten
	return Answer{Verdict: OK}.With(More{Roster: r}), nil
}

func rosterNumber(digits string) (n time.Duration, ok bool) {
	if digits == "" || len(digits) > rosterDigits || !isDigits(digits) {
		return 0, false
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || number > int64(NoExpiry/time.Millisecond) {
		return 0, false
	}
	return time.Duration(number) * time.Millisecond, true
}

// ParseRoster reads the entries of a roster as of a time of its server. Those that are not fresh,
// and that are none, are left out.
func ParseRoster(values map[string]string, now time.Duration) *Roster {
	r := &Roster{At: now, Values: values}
	for field, value := range values {
		key, words := strings.Split(field, " "), strings.Split(value, " ")
		if len(words) < 3 {
			continue
		}
		at, known := rosterNumber(words[0])
		life, limited := rosterNumber(words[1])
		age := max(now-at, 0)
		if !known || !limited || age > life {
			continue
		}
		r.read(key, words[2:], age)
	}
	slices.SortFunc(r.Lists, func(a, b List) int { return strings.Compare(a.Print()+a.By, b.Print()+b.By) })
	slices.SortFunc(r.Servers, func(a, b Known) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) })
	slices.SortFunc(r.Refused, func(a, b Refusal) int { return strings.Compare(a.By, b.By) })
	return r
}

// read takes an entry over, by its field and what it says.
func (r *Roster) read(key, words []string, age time.Duration) {
	switch {
	case key[0] == noteList && len(key) == 4 && len(words) == 3:
		ttl, ok := rosterNumber(key[2])
		skew, sure := rosterNumber(key[3])
		l := List{Names: fromRosterTexts(words[2]), Gate: words[0] == "gate", MaxTTL: ttl, Skew: skew, By: fromRosterText(words[1]), Age: age}
		if ok && sure && ttl <= maxRosterTTL && skew <= maxRosterSkew && l.Print() == key[1] {
			r.Lists = append(r.Lists, l)
		}
	case key[0] == noteAt && len(key) == 3 && len(words) == 1 && isID(key[2]):
		r.Servers = append(r.Servers, Known{Name: fromRosterText(key[1]), ID: key[2], By: fromRosterText(words[0]), Age: age})
	case key[0] == noteRefused && len(key) == 2 && len(words) == 2:
		r.Refused = append(r.Refused, Refusal{By: fromRosterText(key[1]), Why: words[0], Names: fromRosterTexts(words[1]), Age: age})
	case key[0] == noteLead && len(key) == 1 && len(words) == 1:
		digits, behind := strings.CutPrefix(words[0], "-")
		lead, ok := rosterNumber(digits)
		if behind {
			lead = -lead
		}
		if ok && lead.Abs() < maxRosterLead {
			r.Lead = &lead
		}
	}
}

// isID reports whether a text may be the run_id of a server.
func isID(s string) bool {
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"
	return s != "" && len(s) <= RunIDLength && strings.Trim(s, alphabet) == ""
}
