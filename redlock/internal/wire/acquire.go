package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

func acquireKeys(c *Call, to []string) []string {
	to = withRecord(c, lockAndFences(c, to))
	if c.All != nil {
		to = append(to, c.All.Record())
	}
	return to
}

func acquireArgs(c *Call, _ *Set, to []string) []string {
	to = append(to, c.Lock, c.TTL, c.Hint, c.Keys.Slot, c.Skew)
	if c.Member == "" && c.Sequence == nil {
		return to // each word costs a server as much as a third of a command
	}
	return append(append(to, c.Member, c.QueueLife), c.Sequence...)
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
	switch len(parts) {
	case 3, 4:
		return doneAnswer(parts)
	case 5:
		return unknownAnswer(parts)
	}
	token, holder, err := holderAnswer(msg.ValkeyMessage)
	if err != nil {
		return Answer{}, err
	}
	if len(parts) != 6 {
		return Answer{}, msg.unexpected()
	}
	if holder.Rank, err = rankOf(parts[5]); err != nil {
		return Answer{}, err
	}
	holder.Holds = heldRecord(parts[4])
	server, err := clockOf(parts[2], parts[3])
	return Answer{Verdict: Refused, Token: token, Server: server}.With(holder), err
}

// grantedAnswer reads 'counter seconds micros record'.
func grantedAnswer(msg reply) (Answer, error) {
	text, err := msg.ToString()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	counter, rest, _ := strings.Cut(text, " ")
	seconds, rest, _ := strings.Cut(rest, " ")
	micros, recorded, _ := strings.Cut(rest, " ")
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
	a := Answer{Verdict: OK, Token: token, Server: server}
	if recorded != "" {
		record := ParseRecord(recorded)
		if record == nil {
			return Answer{}, msg.unexpected()
		}
		a = a.With(More{Record: record})
	}
	return a, nil
}

func rankOf(msg valkey.ValkeyMessage) (int, error) {
	rank, err := msg.AsInt64()
	if err != nil {
		return 0, unexpected(msg)
	}
	return int(rank), nil
}

// doneAnswer reads a refusal because of the sequence, or because of all.
func doneAnswer(parts []valkey.ValkeyMessage) (Answer, error) {
	var m More
	text, err := parts[0].ToString()
	if err == nil {
		m.Record = ParseRecord(text)
	}
	if m.Record == nil {
		return Answer{}, unexpected(parts[0])
	}
	if len(parts) == 4 {
		if text, err := parts[3].ToString(); err == nil {
			m.All = ParseRecord(text)
		}
		if m.All == nil {
			return Answer{}, unexpected(parts[3])
		}
	}
	server, err := clockOf(parts[1], parts[2])
	return Answer{Verdict: Refused, Server: server}.With(m), err
}

// unknownAnswer reads that a node does not know the sequence, or all, or both.
func unknownAnswer(parts []valkey.ValkeyMessage) (_ Answer, err error) {
	var m More
	if m.Unknown, err = parts[0].ToString(); err != nil || m.Unknown == "" {
		return Answer{}, unexpected(parts[0])
	}
	of := func(msg valkey.ValkeyMessage) (record *Record, unknown bool) {
		if msg.IsNil() {
			return nil, false
		}
		text, textErr := msg.ToString()
		if textErr != nil {
			err = unexpected(msg)
		}
		return ParseRecord(text), true
	}
	m.Record, m.UnknownKey = of(parts[3])
	m.All, m.UnknownAll = of(parts[4])
	if err != nil || !m.UnknownKey && !m.UnknownAll {
		return Answer{}, unexpected(parts[0])
	}
	server, err := clockOf(parts[1], parts[2])
	return Answer{Verdict: Failed, Server: server}.With(m), err
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
