package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

func joinArgs(c *Call, _ *Target, to []string) []string { return append(to, c.Member, c.QueueLife) }

// leaveAnswer reads what release.lua returns for a member: the member has left in any case.
func leaveAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	r.number(msg)
	return Answer{Verdict: OK}
}

// QueueFull is the rank of a waiter that has no place in the queue. A queue has 4096 members at
// most, which bounds its memory on a server. noRank is the rank of an attempt that does not wait,
// or could not join.
const (
	QueueFull = -1
	noRank    = -2
)

// A member of a queue consists of the version of its format, a number, which is its score, the
// process that it waits in, and the identity. The number is a time in microseconds since 1970, or
// the next one that is free in the process, so the member is unique. Scripts know the format too,
// see lib/call.lua and lib/join.lua.
const (
	memberVersion = "1 "
	numberLength  = 16
)

// NewMember makes a member of a queue. process is what NewProcess makes.
func NewMember(number uint64, process, identity string) string {
	text := strconv.FormatUint(number, 10)
	return memberVersion + strings.Repeat("0", max(numberLength-len(text), 0)) + text + " " + process + " " + identity
}

// MemberNumber returns the number of a member of a queue that NewMember has made.
func MemberNumber(member string) uint64 {
	text, _, _ := strings.Cut(strings.TrimPrefix(member, memberVersion), " ")
	number, _ := strconv.ParseUint(text, 10, 64)
	return number
}

// reservation begins the text of a lock that is nobody's lease: the key is reserved for the member
// behind it, see lib/call.lua.
const reservation = "R "

// ReservedFor returns the identity of the waiter for which that text of a lock reserves the key. It
// returns false for the owner value of a holder, and for a reservation of another version.
func ReservedFor(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, reservation+memberVersion)
	number, rest, ok2 := strings.Cut(rest, " ")
	process, identity, ok3 := strings.Cut(rest, " ")
	if !ok || !ok2 || !ok3 || len(number) < numberLength || len(process) != randomLength || !isDigits(number) {
		return "", false
	}
	return identity, true
}

// Message is a node's call to the process of a waiter whose turn comes.
type Message struct {
	After   time.Duration // until it is the waiter's turn; not negative
	Number  uint64        // of the waiter, see NewMember
	Release string        // the lock that was released, or the member that left
}

// MaxKeep bounds lifetimes: a century.
const MaxKeep = 100 * 365 * 24 * time.Hour

const messageVersion = "1 "

// ParseMessage reads the text that lib/call.lua publishes. It returns false for any other text,
// such as one of another version.
func ParseMessage(text string) (m Message, ok bool) {
	rest, ok1 := strings.CutPrefix(text, messageVersion)
	after, rest, ok2 := strings.Cut(rest, " ")
	number, release, ok3 := strings.Cut(rest, " ")
	ms, err1 := strconv.ParseInt(after, 10, 64)
	to, err2 := strconv.ParseUint(number, 10, 64)
	if !ok1 || !ok2 || !ok3 || err1 != nil || err2 != nil || !isDigits(after) || ms > MaxKeep.Milliseconds() {
		return Message{}, false
	}
	return Message{time.Duration(ms) * time.Millisecond, to, release}, true
}

func isDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }
