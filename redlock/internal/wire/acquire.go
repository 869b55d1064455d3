package wire

import (
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

// MaxToken is the largest fencing token: scripts count in doubles, which are exact up to 2^53.
const MaxToken = 1<<53 - 1

// MaxLead bounds how far a counter may be ahead of its server's clock, see lib/counter.lua.
const MaxLead = 24 * time.Hour
