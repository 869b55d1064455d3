package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

func acquireArgs(c *Call, _ *Target, to []string) []string {
	to = append(to, c.Lock, c.TTL, c.Hint, c.Keys.Slot, c.Skew)
	if c.Member == "" {
		return to // each word costs a server as much as a third of a command
	}
	return append(to, c.Member, c.QueueLife)
}

// acquireAnswer reads what acquire.lua returns.
func acquireAnswer(_ *Call, msg reply) (Answer, error) {
	if !msg.IsArray() {
		return grantedAnswer(msg)
	}
	parts, err := msg.ToArray()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	token, holder, err := holderAnswer(msg.ValkeyMessage)
	if err != nil {
		return Answer{}, err
	}
	if len(parts) != 5 {
		return Answer{}, msg.unexpected()
	}
	if holder.Rank, err = rankOf(parts[4]); err != nil {
		return Answer{}, err
	}
	server, err := clockOf(parts[2], parts[3])
	return Answer{Verdict: Refused, Token: token, Server: server}.With(holder), err
}

// grantedAnswer reads 'counter seconds micros'.
func grantedAnswer(msg reply) (Answer, error) {
	text, err := msg.ToString()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	counter, rest, _ := strings.Cut(text, " ")
	seconds, micros, _ := strings.Cut(rest, " ")
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	if err1 != nil || err2 != nil {
		return Answer{}, msg.unexpected()
	}
	server, err := ServerTime(s, us)
	if err != nil {
		return Answer{}, err
	}
	token, err := counterOf(counter)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Verdict: OK, Token: token, Server: server}, nil
}

func rankOf(msg valkey.ValkeyMessage) (int, error) {
	rank, err := msg.AsInt64()
	if err != nil {
		return 0, unexpected(msg)
	}
	return int(rank), nil
}

// MaxToken is the largest fencing token: scripts count in doubles, which are exact up to 2^53.
const MaxToken = 1<<53 - 1

// MaxLead is by how much a counter may lead its server's clock, see lib/counter.lua.
const MaxLead = 24 * time.Hour

// counterOf reads a counter that a server granted. The scripts have looked at it, so one that is
// damaged is the server's own invention.
func counterOf(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > MaxToken {
		return 0, DamagedCounter(text)
	}
	return n, nil
}
