package wire

import (
	"strconv"
	"time"
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
	if err != nil || len(parts) != 5 {
		return Answer{}, msg.unexpected()
	}
	token, holder, err := holderAnswer(parts[0], parts[1])
	if err != nil {
		return Answer{}, err
	}
	rank, err := parts[4].AsInt64()
	if err != nil {
		return Answer{}, unexpected(parts[4])
	}
	holder.Rank = int(rank)
	server, err := clockOf(parts[2], parts[3])
	return Answer{Verdict: Refused, Token: token, Server: server}.With(holder), err
}

// grantedAnswer reads 'seconds micros counter'.
func grantedAnswer(msg reply) (Answer, error) {
	text, err := msg.ToString()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	server, counter, err := timed(text)
	if err != nil {
		return Answer{}, err
	}
	return grantedWith(counter, server)
}

// grantedWith returns the answer to an acquisition that was granted with that token.
func grantedWith(counter string, server time.Duration) (Answer, error) {
	token, err := counterOf(counter)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Verdict: OK, Token: token, Server: server}, nil
}

// MaxToken is the largest fencing token: scripts count in doubles, which are exact up to 2^53.
const MaxToken = 1<<53 - 1

// MaxLead bounds how far a counter may be ahead of its server's clock, see lib/counter.lua.
const MaxLead = 24 * time.Hour

// counterOf reads the counter that a server granted. The scripts grant with no damaged counter, so
// a server that answers with one has made it up.
func counterOf(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > MaxToken {
		return 0, DamagedCounter(text)
	}
	return n, nil
}
