package wire

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

// MaxGroup is how many calls one command carries at most, and how many leases an ExtendMany. A
// server does nothing else meanwhile, for a few tenths of a millisecond.
const MaxGroup = 128

// Buffers are what a caller keeps from one command to the next, so that none is made for each.
type Buffers struct {
	words              []string
	slots              slotSet
	acquired, released []*Call // of a packet
}

// Group returns how many of the calls one command carries: one, or several acquisitions and
// releases of different keys, the acquisitions with different counters. It takes them as they come:
// commands for a key are not put in another order. The calls are of one prefix, and so of one hash
// of counters.
func (b *Buffers) Group(calls []*Call) int {
	most := min(len(calls), MaxGroup)
	if most == 1 || !calls[0].isPaired() {
		return 1
	}
	b.slots = slotSet{}
	var p pairs
	size := 0
	for size < most && calls[size].isPaired() && p.add(calls[size]) && !b.slots.clash(calls, size) {
		size++
	}
	return size
}

// slotSet tells which counters the keys of the first calls of a group have: one bit for four of
// them. Two calls with one bit are compared as they are.
type slotSet [slots / 4 / 64]uint64

// clash reports whether the last call must not share a command with one before it, and notes it.
func (n *slotSet) clash(calls []*Call, last int) bool {
	c := calls[last]
	word, bit := &n[c.Keys.slot/4/64], uint64(1)<<(c.Keys.slot/4%64)
	if *word&bit == 0 {
		*word |= bit
		return false
	}
	return slices.ContainsFunc(calls[:last], func(other *Call) bool {
		if c.Op.Grants() && other.Op.Grants() {
			return c.Keys.slot == other.Keys.slot
		}
		return c.Keys.Lock == other.Keys.Lock
	})
}

// isPaired reports whether the call is an acquisition or a release that pairs.lua can do.
func (c *Call) isPaired() bool {
	if c.Op.Frees() {
		return c.Keep == "0"
	}
	return c.Op.Grants()
}

// pairs are acquisitions and releases of different keys, in one command.
type pairs struct{ acquire, release *Call } // the first of each; nil if there is none

// add reports whether the call can be one more of them, but for its key.
func (p *pairs) add(c *Call) bool {
	first := &p.acquire
	if c.Op.Frees() {
		first = &p.release
	}
	if *first == nil {
		*first = c
	}
	return c.TTL == (*first).TTL && c.Turn == (*first).Turn
}

// Encode makes the command of calls that Group has put together, for a server process.
func (b *Buffers) Encode(client Builder, calls []*Call, target *Target) valkey.Completed {
	words, numkeys := b.words[:0], 0
	var s *Script
	switch first := calls[0]; {
	case table[first.Op].command != nil:
		return table[first.Op].command(client)
	case len(calls) == 1:
		r := &table[first.Op]
		s = scriptOf(first)
		words = r.keys(first, words)
		numkeys = len(words)
		words = r.args(first, target, words)
	default:
		s = pairsScript
		words, numkeys = b.pairWords(calls)
	}
	b.words = words
	return s.call(client, words, numkeys, len(calls) == 1 && table[calls[0].Op].reads, target.gets(s))
}

// pairWords makes the keys and arguments of pairs.lua, and returns how many are keys.
func (b *Buffers) pairWords(calls []*Call) (words []string, numkeys int) {
	acquired, released, queued := b.acquired[:0], b.released[:0], false
	for _, c := range calls {
		if c.Op.Grants() {
			acquired = append(acquired, c)
		} else {
			released = append(released, c)
		}
		queued = queued || c.leaving() != ""
	}
	b.acquired, b.released = acquired, released

	words = b.words[:0]
	for _, c := range acquired {
		words = append(words, c.Keys.Lock)
	}
	for _, c := range released {
		words = append(words, c.Keys.Lock)
	}
	words = append(words, calls[0].Keys.Fences)
	numkeys = len(words)

	var a, r Call // what all acquisitions have in common, and all releases
	if len(acquired) > 0 {
		a = *acquired[0]
	}
	if len(released) > 0 {
		r = *released[0]
	}
	least, largest := hintsOf(acquired)
	words = append(words, strconv.Itoa(len(acquired)), a.TTL, cmp.Or(a.Skew, "0"), a.QueueLife, r.Turn, r.Channel, least, largest, locksOf(released), "queues")
	for _, c := range acquired {
		words = append(words, c.Keys.Slot)
	}
	for _, c := range acquired {
		words = append(words, c.Lock)
	}
	if queued {
		for _, c := range acquired {
			words = append(words, c.leaving())
		}
		for _, c := range released {
			words = append(words, c.leaving())
		}
	}
	return words, numkeys
}

// hintsOf returns the least and the largest of the hints of acquisitions; 0 where there is none.
func hintsOf(acquired []*Call) (least, largest string) {
	for _, c := range acquired {
		if least == "" || isBelow(c.Hint, least) {
			least = c.Hint
		}
		if isBelow(largest, c.Hint) {
			largest = c.Hint
		}
	}
	return cmp.Or(least, "0"), cmp.Or(largest, "0")
}

// isBelow compares two numbers in decimal digits.
func isBelow(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// locksOf are the locks of releases, a line each: no lock has a control character.
func locksOf(released []*Call) string {
	size := 0
	for _, c := range released {
		size += len(c.Lock) + len("\n")
	}
	var lines strings.Builder
	lines.Grow(size)
	for i, c := range released {
		if i > 0 {
			lines.WriteByte('\n')
		}
		lines.WriteString(c.Lock)
	}
	return lines.String()
}

// Result is what came of a call that was sent.
type Result struct {
	Answer
	Err   error
	Alone bool // it is to be sent once more, by itself
}

// Decode appends the results of the calls of a command.
func Decode(calls []*Call, result valkey.ValkeyResult, to []Result) []Result {
	whole, err := result.ToMessage()
	msg := reply{whole}
	if len(calls) == 1 {
		a := Answer{}
		if err == nil {
			a, err = table[calls[0].Op].answer(calls[0], msg)
		}
		return append(to, Result{Answer: a, Err: err})
	}
	if err == nil {
		if to, err = decodePairs(calls, msg, to); err == nil {
			return to
		}
	}
	// One of them may be the reason.
	to = to[:0]
	alone := answersItself(err)
	for range calls {
		to = append(to, Result{Err: err, Alone: alone})
	}
	return to
}

// decodePairs reads what pairs.lua returns.
func decodePairs(calls []*Call, msg reply, to []Result) ([]Result, error) {
	said, others := msg, []valkey.ValkeyMessage(nil)
	if parts, err := msg.ToArray(); err == nil && len(parts) > 0 {
		said, others = reply{parts[0]}, parts[1:]
	}
	text, err := said.ToString()
	if err != nil {
		return to, msg.unexpected()
	}
	seconds, rest, _ := strings.Cut(text, " ")
	micros, rest, _ := strings.Cut(rest, " ")
	freed, granted, _ := strings.Cut(rest, " ")
	acquisitions := 0
	for _, c := range calls {
		if c.Op.Grants() {
			acquisitions++
		}
	}
	if len(granted) != acquisitions || len(freed) != len(calls)-acquisitions {
		return to, msg.unexpected()
	}
	if len(others) != acquisitions-strings.Count(granted, "1") {
		return to, msg.unexpected()
	}
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	if err1 != nil || err2 != nil {
		return to, msg.unexpected()
	}
	server, err := ServerTime(s, us)
	if err != nil {
		return to, err
	}
	for _, c := range calls {
		var r Result
		if c.Op.Frees() {
			if r.Verdict = Refused; freed[0] == '1' {
				r.Verdict = OK
			}
			freed = freed[1:]
		} else {
			if granted[0] == '1' {
				r.Answer, r.Err = grantedWith(c.Hint, server)
			} else {
				r.Answer, r.Err = pairedAnswer(others[0], server)
				others = others[1:]
			}
			granted = granted[1:]
		}
		to = append(to, r)
	}
	return to, nil
}

// grantedWith is the answer to an acquisition that was granted with that token.
func grantedWith(text string, server time.Duration) (Answer, error) {
	token, err := counterOf(text)
	if err != nil {
		return Answer{}, err
	}
	return Answer{Verdict: OK, Token: token, Server: server}, nil
}

// pairedAnswer reads what pairs.lua returns for an acquisition that was not granted with its hint.
func pairedAnswer(msg valkey.ValkeyMessage, server time.Duration) (Answer, error) {
	if err := msg.Error(); err != nil {
		return Answer{}, err
	}
	if !msg.IsArray() {
		text, err := msg.ToString()
		if err != nil {
			return Answer{}, unexpected(msg)
		}
		return grantedWith(text, server)
	}
	token, holder, err := holderAnswer(msg)
	if err != nil {
		return Answer{}, err
	}
	parts, err := msg.ToArray()
	if err != nil || len(parts) != 3 {
		return Answer{}, unexpected(msg)
	}
	holder.Rank, err = rankOf(parts[2])
	return Answer{Verdict: Refused, Token: token, Server: server}.With(holder), err
}
