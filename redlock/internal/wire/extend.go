package wire

import (
	"strings"

	"github.com/valkey-io/valkey-go"
)

// Extended is a node's answer on one lease of an extension: a digit.
type Extended uint8

// The answers.
const (
	ByOther  Extended = iota // the key is another owner's
	InPlace                  // extended
	Refilled                 // was gone, put back
	Gone                     // was gone, and could not or must not be put back
)

// many has the words of an extension of several leases.
type many struct{ keys, args []string }

// NewExtendMany makes the call that extends leases to the TTL, in ms. It puts no key back. keys are
// those of the leases, and behind them that of the counters. name stands in Keys.Lock, where other
// calls have their key.
func NewExtendMany(name, ttl string, keys, locks []string) *Call {
	return &Call{Op: Extend, Keys: &Keys{Lock: name}, TTL: ttl, many: &many{keys, locks}}
}

// Leases returns how many leases the call is about.
func (c *Call) Leases() int {
	if c.many != nil {
		return len(c.many.keys) - 1
	}
	return 1
}

func extendKeys(c *Call, to []string) []string {
	if c.many != nil {
		return append(to, c.many.keys...)
	}
	return lockAndFences(c, to)
}

func extendArgs(c *Call, target *Target, to []string) []string {
	refill := "0"
	if target != nil && target.Vouched && c.Refill {
		refill = "1"
	}
	to = append(to, c.TTL, refill)
	if c.many != nil {
		return append(to, c.many.args...)
	}
	return append(to, c.Lock, c.Keys.Slot, c.Member)
}

func extendAnswer(c *Call, msg valkey.ValkeyMessage, r reading) Answer {
	digits := r.text(msg)
	if r.expect(len(digits) == c.Leases() && strings.Trim(digits, "0123") == "", msg); *r.err != nil {
		return Answer{}
	}
	if c.many != nil {
		return Answer{Verdict: OK, Extended: InPlace}.With(More{Each: digits})
	}
	a := Answer{Verdict: Refused, Extended: Extended(digits[0] - '0')}
	if a.Extended == InPlace || a.Extended == Refilled {
		a.Verdict = OK
	}
	return a
}
