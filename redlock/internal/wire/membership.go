package wire

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Mode is what a Belong call is to do, see belong.lua.
type Mode string

// The modes.
const (
	Asking     Mode = "ask"
	Entering   Mode = "enter"
	Refreshing Mode = "refresh"
	Leaving    Mode = "leave"
)

// Membership is what a process says of itself to each of its nodes.
type Membership struct {
	Mode     Mode
	Nodes    int           // it has
	MaxTTL   time.Duration // the longest of its leases
	Skew     time.Duration // of wall clocks
	Lifetime time.Duration // of what it writes
	Grace    time.Duration
	Identity string
	NewID    string         // for a server that has no id of its own; empty for servers that are known by their run_id
	Lead     *time.Duration // of the clock of the server that is asked over the median; nil where that is not sure
	Servers  []Server
}

// Server is one of the servers that are vouched for together.
type Server struct {
	ID      string        // run_id, or the server's own
	Age     time.Duration // since it was seen
	Address string        // as its observer has it
	By      string        // identity of the observer
	Written time.Duration // to leave: when, by the clock of the server that is asked
	Gone    bool          // it counted, and another one has taken its place
}

// Words are the arguments of the script.
func (m *Membership) Words() []string {
	words := []string{string(m.Mode), strconv.Itoa(m.Nodes), ms(m.MaxTTL), ms(m.Skew), ms(m.Lifetime), ms(m.Grace), memberText(m.Identity), m.NewID, ""}
	if m.Lead != nil && m.Lead.Abs() < maxMemberLead {
		words[len(words)-1] = strconv.FormatInt(m.Lead.Milliseconds(), 10)
	}
	for _, s := range m.Servers {
		third := memberText(s.Address)
		if m.Mode == Leaving {
			third = ms(s.Written)
		}
		age := ms(s.Age)
		if s.Gone {
			age = isGone
		}
		words = append(words, s.ID, age, third)
	}
	return words
}

// ms is a duration that is no less in milliseconds.
func ms(d time.Duration) string {
	return strconv.FormatInt(int64((max(d, 0)+time.Millisecond-1)/time.Millisecond), 10)
}

// memberText makes a text a field: without blanks, not empty.
func memberText(text string) string {
	if text == "" {
		return "-"
	}
	return url.QueryEscape(text)
}

// MembersKeys are the names of where a node keeps who uses it.
func MembersKeys(prefix string) Keys { return Keys{Lock: prefix + members} }

func membersKey(c *Call, to []string) []string { return append(to, c.Keys.Lock) }

func membersArgs(c *Call, _ *Target, to []string) []string { return append(to, c.Members...) }

// Members is what a node knows of the processes that use it.
type Members struct {
	Nodes     int           // each of them has; of none where Servers is empty
	MaxTTL    time.Duration // the largest in use; 0 for none
	Skew      time.Duration
	Lead      *time.Duration // of the server's clock over the median, when a process last knew; nil where none did
	ID        string         // the server's own; empty for none
	Servers   []Server
	At        time.Duration // the server's clock
	Unwritten string        // why what it was told could not be written; empty where it was
}

const (
	maxMembers     = 256 << 10 // of the text, in bytes, as in belong.lua
	maxMemberTTL   = 24 * time.Hour
	maxMemberSkew  = time.Minute
	maxMemberLead  = 100 * 365 * 24 * time.Hour
	maxMemberField = 1024
	memberDigits   = 15
	isGone         = "gone"
)

// membersAnswer reads what belong.lua returns. A process that does not agree is refused.
func membersAnswer(_ *Call, msg reply) (Answer, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) != 4 {
		return Answer{}, msg.unexpected()
	}
	agrees, err := parts[0].AsInt64()
	if err != nil || agrees != 0 && agrees != 1 {
		return Answer{}, msg.unexpected()
	}
	var texts [3]string
	for i := range texts {
		if texts[i], err = parts[1+i].ToString(); err != nil {
			return Answer{}, msg.unexpected()
		}
	}
	now, ok := memberNumber(texts[1])
	if !ok {
		return Answer{}, msg.unexpected()
	}
	m := ParseMembers(texts[0], now)
	if m == nil {
		return Answer{}, msg.unexpected()
	}
	m.Unwritten = texts[2]
	verdict := OK
	if agrees == 0 {
		verdict = Refused
	}
	return Answer{Verdict: verdict}.With(More{Members: m}), nil
}

func memberNumber(digits string) (n time.Duration, ok bool) {
	if digits == "" || len(digits) > memberDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || number > int64(NoExpiry/time.Millisecond) {
		return 0, false
	}
	return time.Duration(number) * time.Millisecond, true
}

// ParseMembers reads the text of a list of members as of a time of its server; nil if it is none.
// Lines that are none are left out, and so are values that no process may have.
func ParseMembers(text string, now time.Duration) *Members {
	if len(text) > maxMembers {
		return nil
	}
	lines := strings.Split(text, "\n")
	head := strings.Split(lines[0], " ")
	if len(head) != 10 || head[0] != "1" {
		return nil
	}
	var numbers [7]time.Duration
	for i := range numbers {
		n, ok := memberNumber(head[1+i])
		if !ok {
			return nil
		}
		numbers[i] = n
	}
	m := &Members{Nodes: int(numbers[0] / time.Millisecond), At: now}
	if numbers[1] <= maxMemberTTL {
		m.MaxTTL = numbers[1]
	}
	if numbers[3] <= maxMemberSkew {
		m.Skew = numbers[3]
	}
	if digits, behind := strings.CutPrefix(head[8], "-"); digits != "" {
		lead, ok := memberNumber(digits)
		if !ok {
			return nil
		}
		if behind {
			lead = -lead
		}
		if lead.Abs() < maxMemberLead {
			m.Lead = &lead
		}
	}
	if isID(head[9]) {
		m.ID = head[9]
	}
	for _, line := range lines[1:] {
		fields := strings.Split(line, " ")
		if len(fields) != 5 || !isID(fields[0]) {
			continue
		}
		seen, ok := memberNumber(fields[1])
		if !ok {
			continue
		}
		m.Servers = append(m.Servers, Server{ID: fields[0], Age: max(now-seen, 0), Address: fromMemberText(fields[2]), By: fromMemberText(fields[3]), Gone: fields[4] == isGone})
	}
	return m
}

// isID reports whether a text may be the id of a server: a run_id, or a random text.
func isID(s string) bool {
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"
	return s != "" && s != "-" && len(s) <= RunIDLength && strings.Trim(s, alphabet) == ""
}

func fromMemberText(field string) string {
	text, err := url.QueryUnescape(field)
	if err != nil || len(text) > maxMemberField || field == "-" {
		return "?"
	}
	return fmt.Sprintf("%.*s", maxSaid, strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return '?'
		}
		return r
	}, text))
}

// NewServerID makes an id for a server that has none. It begins with a letter, as belong.lua
// reads ids.
func NewServerID() string { return "s" + RandomText(randomBytes) }
