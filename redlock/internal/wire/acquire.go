package wire

import (
	"strings"

	"github.com/valkey-io/valkey-go"
)

// proposed returns the token in the call's lock.
func (c *Call) proposed() string {
	token, _, _ := strings.Cut(c.Lock, " ")
	return token
}

func acquireArgs(c *Call, _ *Target, to []string) []string {
	to = append(to, c.Lock, c.TTL, c.proposed(), c.Keys.Slot)
	if c.Member == "" {
		return to // each word costs a server as much as a third of a command
	}
	return append(to, c.Member, c.QueueLife)
}

func agreeArgs(c *Call, _ *Target, to []string) []string {
	return append(to, c.Lock, c.proposed(), c.Keys.Slot)
}

// acquireAnswer reads what acquire.lua returns to an attempt that wants the key.
func acquireAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	if !msg.IsArray() {
		server, counter := r.timed(msg)
		return Answer{Verdict: OK, Token: r.counter(counter), Server: server}
	}
	parts := r.parts(msg, 5)
	token, holder := r.holder(parts[0], parts[1])
	holder.Rank = int(r.number(parts[4]))
	return Answer{Verdict: Refused, Token: token, Server: r.clock(parts[2], parts[3])}.With(holder)
}

// agreeAnswer reads what agree.lua returns.
func agreeAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	if n, err := msg.AsInt64(); err == nil && n == 1 {
		return Answer{Verdict: OK}
	}
	return Answer{Verdict: Refused, Token: r.counter(r.text(msg))}
}

// MaxToken is the largest fencing token: counters are doubles, which are exact up to 2^53.
const MaxToken = 1<<53 - 1
