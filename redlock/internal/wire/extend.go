package wire

import (
	"strconv"
	"strings"
)

// Extended is what extend.lua answers.
type Extended uint8

// The answers.
const (
	ByOther  Extended = iota // the key is another owner's
	InPlace                  // extended
	Refilled                 // was gone, put back
	Gone                     // was gone and could or must not be put back
)

func extendArgs(c *Call, target *Target, to []string) []string {
	refill := "0"
	if target != nil && target.Vouched && c.Refill {
		refill = "1"
	}
	return append(to, c.Lock, c.TTL, strconv.FormatUint(c.Token, 10), c.Keys.Slot, c.Spread, refill)
}

func extendAnswer(_ *Call, msg reply) (Answer, error) {
	answer, err := msg.AsInt64()
	if err != nil || answer < int64(ByOther) || answer > int64(Gone) {
		return Answer{}, msg.unexpected()
	}
	a := Answer{Verdict: Refused, Extended: Extended(answer)}
	if a.Extended == InPlace || a.Extended == Refilled {
		a.Verdict = OK
	}
	return a, nil
}

// many are the words of an extension of many leases, of which the first are keys.
type many struct {
	words         []string
	keys, members int
}

// Held is a lease to be extended with others.
type Held struct {
	Keys *Keys
	Lock string
}

// NewExtendMany makes the call that extends leases by the TTL in ms, as far as they are there, and
// with spread raises their counters. The caller's name for it stands where other calls have their
// key.
func NewExtendMany(name, ttl string, leases []Held, spread bool) *Call {
	m := &many{members: len(leases), keys: len(leases), words: make([]string, 0, 4*len(leases)+2)}
	for _, l := range leases {
		m.words = append(m.words, l.Keys.Lock)
	}
	if spread {
		m.keys++
		m.words = append(m.words, leases[0].Keys.Fences)
	}
	m.words = append(m.words, ttl)
	for _, l := range leases {
		m.words = append(m.words, l.Lock)
	}
	if spread {
		for _, l := range leases {
			token, _, _ := strings.Cut(l.Lock, " ")
			m.words = append(m.words, token)
		}
		for _, l := range leases {
			m.words = append(m.words, l.Keys.Slot)
		}
	}
	return &Call{Op: ExtendMany, Keys: &Keys{Lock: name}, TTL: ttl, many: m}
}

func manyKeys(c *Call, to []string) []string { return append(to, c.many.words[:c.many.keys]...) }

func manyArgs(c *Call, _ *Target, to []string) []string {
	return append(to, c.many.words[c.many.keys:]...)
}

func manyAnswer(c *Call, msg reply) (Answer, error) {
	digits, err := msg.ToString()
	if err != nil || len(digits) != c.many.members {
		return Answer{}, msg.unexpected()
	}
	return Answer{Verdict: OK, Extended: InPlace}.With(More{Each: digits}), nil
}
