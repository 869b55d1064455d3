package wire

import (
	"errors"
	"strconv"
	"time"
)

func restoreArgs(c *Call, _ *Set, to []string) []string {
	return append(to, c.Write.Process, c.Write.Known, c.Write.Lifetime)
}

// recallAnswer reads what recall.lua returns. A node that does not know the sequence has refused.
func recallAnswer(_ *Call, msg reply) (Answer, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) != 4 {
		return Answer{}, msg.unexpected()
	}
	known, err1 := parts[0].AsInt64()
	process, err2 := parts[1].ToString()
	text, err3 := parts[2].ToString()
	left, err4 := parts[3].AsInt64()
	if err := errors.Join(err1, err2, err3, err4); err != nil || known != 1 && process == "" {
		return Answer{}, msg.unexpected()
	}
	verdict, m := OK, More{Record: ParseRecord(text), PTTL: MaxKeep}
	if known != 1 {
		verdict, m.Unknown, m.UnknownKey = Refused, process, true
	}
	if left >= 0 {
		m.PTTL = min(MaxKeep, lifetime(left))
	}
	return Answer{Verdict: verdict}.With(m), nil
}

// restoreAnswer reads what restore.lua returns.
func restoreAnswer(_ *Call, msg reply) (Answer, error) {
	switch answer, err := msg.AsInt64(); {
	case err != nil || answer < 0 || answer > 3:
		return Answer{}, msg.unexpected()
	case answer == 0:
		return Answer{Verdict: Refused}, nil
	default:
		return Answer{Verdict: OK, Wrote: answer != 2, Replaced: answer == 3}, nil
	}
}

func pauseArgs(c *Call, _ *Set, to []string) []string {
	m := &c.Write.Mark
	return append(to, strconv.FormatUint(m.Version, 10), strconv.FormatInt(m.Floor, 10), escapeLabel(m.By), escapeLabel(m.Why), c.Write.Lifetime,
		strconv.FormatInt(m.At, 10))
}

// pauseAnswer reads what pause.lua returns.
func pauseAnswer(_ *Call, msg reply) (Answer, error) {
	if !msg.IsArray() {
		return flagAnswer(nil, msg)
	}
	parts, err := msg.ToArray()
	if err != nil || len(parts) < 1 || len(parts) > 2 {
		return Answer{}, msg.unexpected()
	}
	text, err := parts[len(parts)-1].ToString()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	if len(parts) == 1 {
		record := ParseRecord(text)
		if record == nil {
			return Answer{}, msg.unexpected()
		}
		return Answer{Verdict: Refused}.With(More{Record: record}), nil
	}
	process, err := parts[0].ToString()
	if err != nil || process == "" {
		return Answer{}, msg.unexpected()
	}
	return Answer{Verdict: Failed}.With(More{Unknown: process, UnknownKey: true, Record: ParseRecord(text), PTTL: MaxKeep}), nil
}

// MaxKeep bounds for how long a record is kept: a century.
const MaxKeep = 100 * 365 * 24 * time.Hour

// Once is what the scripts need to know of a lease of a sequence, beside the lease's own.
type Once struct {
	Number   int64
	Keep     string // for how long a record is kept after the last of these leases, in ms
	Repeated bool   // the number is granted until it is completed, not once
	IsTime   bool   // the number is a time in ms since 1970, which is not to be ahead of the server's
	Label    string
	Due      int64 // when it was due, where it is a time
}

// onceWords is how many Words are.
const onceWords = 6

// Words are the last arguments of an acquisition, an extension and a release.
func (o Once) Words() []string {
	flag := func(set bool) string {
		if set {
			return "1"
		}
		return "0"
	}
	return []string{strconv.FormatInt(o.Number, 10), o.Keep, flag(!o.Repeated), flag(o.IsTime), escapeLabel(o.Label), strconv.FormatInt(o.Due, 10)}
}
