package wire

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/valkey-io/valkey-go"
)

// MaxGroup bounds the calls of one command, and the leases of one extension. A server does nothing
// else while it runs such a command: for a few tenths of a millisecond.
const MaxGroup = 128

// Buffers are memory that a caller keeps from one command to the next, to save allocations. They
// are not safe for concurrent use.
type Buffers struct {
	words              []string
	locks              map[string]bool // of the calls in a group
	acquired, released []*Call         // of a command of pairs.lua
}

// Group returns how many of the first calls one command carries: one, or several acquisitions and
// releases of different keys, the acquisitions with one TTL. It leaves no call out, so calls for
// one key keep their order. All calls have one prefix, and so one set of counters.
func (b *Buffers) Group(calls []*Call) int {
	most := min(len(calls), MaxGroup)
	if most == 1 || !calls[0].isPaired() {
		return 1
	}
	if b.locks == nil {
		b.locks = make(map[string]bool, MaxGroup)
	}
	clear(b.locks)
	ttl, size := "", 0
	for ; size < most; size++ {
		c := calls[size]
		if !c.isPaired() || b.locks[c.Keys.Lock] {
			break
		}
		b.locks[c.Keys.Lock] = true
		if c.Op.Grants() {
			if ttl = cmp.Or(ttl, c.TTL); ttl != c.TTL {
				break
			}
		}
	}
	return size
}

// isPaired reports whether the call is an acquisition or a release that pairs.lua may do.
func (c *Call) isPaired() bool {
	return c.Member == "" && (c.Op.Grants() || c.Op.Frees() && c.Keep == "0")
}

// Encode makes the command of calls that Group has counted, for a server process.
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

// pairWords returns the keys and arguments of pairs.lua, and how many are keys.
func (b *Buffers) pairWords(calls []*Call) (words []string, numkeys int) {
	acquired, released := b.acquired[:0], b.released[:0]
	for _, c := range calls {
		if c.Op.Grants() {
			acquired = append(acquired, c)
		} else {
			released = append(released, c)
		}
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

	ttl := ""
	if len(acquired) > 0 {
		ttl = acquired[0].TTL // all have it
	}
	words = append(words, strconv.Itoa(len(acquired)), ttl, locksOf(released))
	for _, c := range acquired {
		words = agreeArgs(c, nil, words)
	}
	return words, numkeys
}

// locksOf returns the locks of releases, one a line: no lock has a control character.
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

// Result is the outcome of a call that was sent.
type Result struct {
	Answer
	Err   error
	Alone bool // the call is to be sent once more, by itself
}

// Decode reads the reply to a command, and appends a result for each of its calls.
func Decode(calls []*Call, result valkey.ValkeyResult, to []Result) []Result {
	msg, err := result.ToMessage()
	if len(calls) == 1 {
		to = append(to, Result{Err: err})
		if one := &to[len(to)-1]; err == nil {
			one.Answer = table[calls[0].Op].answer(calls[0], msg, reading{&one.Err})
		}
		return to
	}
	if err == nil {
		if to, err = decodePairs(calls, msg, to); err == nil {
			return to
		}
	}
	// One of the calls may be the reason: then each is sent once more, by itself.
	to = to[:0]
	alone := IsServerError(err) && !IsNoScript(err)
	for range calls {
		to = append(to, Result{Err: err, Alone: alone})
	}
	return to
}

// decodePairs reads what pairs.lua returns.
func decodePairs(calls []*Call, msg valkey.ValkeyMessage, to []Result) ([]Result, error) {
	var failed error
	r := reading{&failed}
	said, holders := msg, []valkey.ValkeyMessage(nil)
	if parts, err := msg.ToArray(); err == nil && len(parts) > 0 {
		said, holders = parts[0], parts[1:]
	}
	server, digits := r.timed(said)
	freed, digits, _ := strings.Cut(digits, " ")
	granted, beyond, _ := strings.Cut(digits, " ")
	for _, c := range calls {
		digit := &granted
		if c.Op.Frees() {
			digit = &freed
		}
		if r.expect(*digit != "", msg); failed != nil {
			return to, failed
		}
		one := Result{}
		switch said := (*digit)[0]; {
		case said == '2':
			one.Alone = true
		case said == '1' && c.Op.Frees():
			one.Verdict = OK
		case said == '1':
			one.Answer = Answer{Verdict: OK, Token: r.counter(c.proposed()), Server: server}
		case said == '3' && c.Op.Grants():
			var next string
			next, beyond, _ = strings.Cut(beyond, " ")
			one.Answer = Answer{Verdict: OK, Token: r.counter(next), Server: server}
		case said == '0' && c.Op.Frees():
			one.Verdict = Refused
		case said == '0' && len(holders) >= 2:
			token, holder := r.holder(holders[0], holders[1])
			holder.Rank, holders = noRank, holders[2:]
			one.Answer = Answer{Verdict: Refused, Token: token, Server: server}.With(holder)
		default:
			r.expect(false, msg)
		}
		*digit = (*digit)[1:]
		to = append(to, one)
	}
	r.expect(granted == "" && freed == "" && beyond == "" && len(holders) == 0, msg)
	return to, failed
}
