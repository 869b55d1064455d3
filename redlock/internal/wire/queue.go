package wire

import (
	"strconv"
	"strings"
)

func joinArgs(c *Call, _ *Set, to []string) []string { return append(to, c.Member, c.QueueLife) }

func leaveKeys(c *Call, to []string) []string { return append(to, c.Keys.Lock, c.Keys.Wait) }

func leaveArgs(c *Call, _ *Set, to []string) []string { return append(to, c.Member, c.Turn, c.Channel) }

// QueueFull is the rank of one that has no place in a queue: 4096 wait already, which bounds what a
// queue takes of a server's memory.
const QueueFull = -1

// A member of a queue is a number, which is its score, the process that it waits in, and the
// holder's name to be. It is unique. The number is a time in microseconds since 1970, or the next
// one that no other of the process has.
const numberLength = 16

// NewMember makes a member of a queue. process is what NewProcess makes.
func NewMember(number uint64, process, identity string) string {
	text := strconv.FormatUint(number, 10)
	return strings.Repeat("0", max(numberLength-len(text), 0)) + text + " " + process + " " + identity
}

// MemberNumber is the number of a member of a queue.
func MemberNumber(member string) uint64 {
	text, _, _ := strings.Cut(member, " ")
	number, _ := strconv.ParseUint(text, 10, 64)
	return number
}

// MemberIdentity returns the name in a member of a queue, and false for the owner value of a
// holder.
func MemberIdentity(text string) (string, bool) {
	number, rest, ok := strings.Cut(text, " ")
	process, identity, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || len(number) < numberLength || len(process) != randomLength || strings.Trim(number, "0123456789") != "" {
		return "", false
	}
	return identity, true
}
