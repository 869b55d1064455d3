package redlock

import (
	"strconv"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/resp"
)

// packetSize is how many requests one command carries at most. A server does nothing else meanwhile, for a few tenths of a millisecond.
const packetSize = 128

// packet returns how many of the requests one command carries: one, or several extensions that want
// the same, or several acquisitions and releases of different keys. It takes them as they come:
// commands for a key are not put in another order.
func (n *node) packet(batch []*request) int {
	most := min(len(batch), packetSize)
	size := 1
	switch first := batch[0]; {
	case most == 1:
	case first.isPlain(): //mutant:packet-of-one
		for size < most && batch[size].isPlain() && batch[size].args.ttl == first.args.ttl { //mutant:packet-of-all-kinds
			size++
		}
	case first.isPaired(): //mutant:pairs-of-one
		clear(n.named)
		var p pairs
		for size = 0; size < most && batch[size].isPaired() && p.add(batch[size], n.named); {
			size++
		}
	}
	return size
}

// isPlain reports whether the request is an extension that changes nothing but the expiry.
func (r *request) isPlain() bool {
	return r.op == OpExtend && !r.alone && r.convoy == nil && r.args.spread == "0"
}

// isPaired reports whether the request is an acquisition or a release that pairsScript can do.
func (r *request) isPaired() bool {
	switch {
	case r.alone || r.attempt.cfg.once != nil: //mutant:pairs-with-a-sequence
		return false
	case r.op == OpRelease:
		return r.args.keep == "0" //mutant:pairs-with-a-minimum-hold
	default:
		return r.op == OpAcquire
	}
}

// pairs are acquisitions and releases of different keys, in one command.
type pairs struct{ acquire, release *request } // the first of each; nil if there is none

// add reports whether the request can be one more of them.
func (p *pairs) add(r *request, named map[string]struct{}) bool {
	first := &p.acquire
	if r.op == OpRelease {
		first = &p.release
	}
	switch {
	case *first == nil:
	case r.args.ttl != (*first).args.ttl || r.args.turn != (*first).args.turn: //mutant:pairs-of-all-ttls
		return false
	}
	if _, there := named[r.attempt.keys.lock]; there { //mutant:pairs-with-a-key-twice
		return false
	}
	named[r.attempt.keys.lock] = struct{}{}
	if *first == nil {
		*first = r
	}
	return true
}

// parcel is the command for a packet of several requests, see command.
func parcel(client valkey.Client, g *gated, packet []*request, full bool, echo string, words []string) (valkey.Completed, []string) {
	s, teachable, numkeys := extendManyScript, true, len(packet)
	if packet[0].op == OpExtend {
		words = extendWords(packet, words[:0])
	} else {
		words, numkeys = pairWords(packet, words[:0])
		if s = pairsScript; countAcquisitions(packet) > 0 { // only for a server that was vouched for
			s, teachable = g.pairs, g.teachable //mutant:pairs-for-any-process
		}
	}
	if echo != "" {
		words = append(words, echo)
	}
	return s.call(client, words, numkeys, full && teachable), words
}

func countAcquisitions(packet []*request) (n int) {
	for _, r := range packet {
		if r.op == OpAcquire {
			n++
		}
	}
	return n
}

func extendWords(packet []*request, words []string) []string {
	for _, r := range packet {
		words = append(words, r.attempt.keys.lock)
	}
	words = append(words, packet[0].args.ttl)
	for _, r := range packet {
		words = append(words, r.attempt.owner)
	}
	return words
}

// pairWords appends the keys and arguments of pairsScript, and returns how many are keys.
func pairWords(packet []*request, words []string) (_ []string, numkeys int) {
	var first pairs
	queued := false
	for _, r := range packet {
		k := &first.release
		if r.op == OpAcquire {
			k = &first.acquire
		}
		if *k == nil {
			*k = r
		}
		queued = queued || r.leaving() != ""
	}
	each := func(op Op, word func(*request) string) {
		for _, r := range packet {
			if r.op == op {
				words = append(words, word(r))
			}
		}
	}
	lock := func(r *request) string { return r.attempt.keys.lock }
	wait := func(r *request) string { return r.attempt.keys.wait }
	each(OpAcquire, lock)
	each(OpAcquire, func(r *request) string { return r.attempt.keys.fence })
	each(OpRelease, lock)
	each(OpAcquire, wait)
	each(OpRelease, wait)
	numkeys = len(words)

	var common, call arguments
	lifetime := ""
	if r := first.acquire; r != nil {
		common, lifetime = *r.args, queueLifetime(r.attempt.cfg.ttl)
	}
	if r := first.release; r != nil {
		call = *r.args
	}
	words = append(words, strconv.Itoa(countAcquisitions(packet)), common.ttl, counterLifetime, common.skew, lifetime, call.turn, call.channel)
	for _, r := range packet {
		if r.op == OpAcquire {
			words = append(words, r.attempt.owner, r.args.hint)
		}
	}
	each(OpRelease, func(r *request) string { return r.attempt.owner })
	if queued {
		each(OpAcquire, (*request).leaving)
		each(OpRelease, (*request).leaving)
	}
	return words, numkeys
}

// answer is what came of a request that was sent.
type answer struct {
	reply
	err   error
	alone bool // it is to be sent once more, by itself
}

// open appends the answers to the requests of a packet, whose command had that echo; 0 for none.
func open(packet []*request, result valkey.ValkeyResult, echo int64, to []answer) []answer {
	msg, err := unwrap(result, echo)
	if len(packet) == 1 {
		rep, err := packet[0].parse(msg, err)
		return append(to, answer{reply: rep, err: err})
	}
	if err == nil && packet[0].op == OpExtend {
		to, err = openExtended(packet, msg, to)
	} else if err == nil {
		to, err = openPairs(packet, msg, to)
	}
	if err == nil {
		return to
	}
	// One of them may be the reason.
	to = to[:0]
	alone := isServerError(err) && !isNoScript(err) //mutant:pairs-fail-together
	for range packet {
		to = append(to, answer{err: err, alone: alone})
	}
	return to
}

// errOutOfStep is why nothing counts that comes over a connection.
var errOutOfStep = &resp.Error{What: "the answer to another command"}

// unwrap takes the answer of a script out of what is returned with its echo.
func unwrap(result valkey.ValkeyResult, echo int64) (valkey.ValkeyMessage, error) {
	msg, err := result.ToMessage()
	if err != nil || echo == 0 {
		return msg, err
	}
	parts, err := msg.ToArray()
	if err != nil || len(parts) != 2 || !parts[1].IsInt64() {
		return valkey.ValkeyMessage{}, errOutOfStep
	}
	if n, _ := parts[1].AsInt64(); n != echo { //mutant:answer-to-another-command
		return valkey.ValkeyMessage{}, errOutOfStep
	}
	return parts[0], nil
}

// openExtended reads what extendManyScript returns. A key that was not extended is gone, or another's, for extendScript to say.
func openExtended(packet []*request, msg valkey.ValkeyMessage, to []answer) ([]answer, error) {
	digits, err := msg.ToString()
	if err != nil || len(digits) != len(packet) {
		return to, unexpected(msg)
	}
	for i := range packet {
		to = append(to, answer{reply: reply{verdict: agreed, extend: extendOwn}, alone: digits[i] != '1'}) //mutant:packet-hides-a-loss
	}
	return to, nil
}

// openPairs reads what pairsScript returns.
func openPairs(packet []*request, msg valkey.ValkeyMessage, to []answer) ([]answer, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) < 3 {
		return to, unexpected(msg)
	}
	server, err := parseClock(parts[0], parts[1])
	if err != nil {
		return to, err
	}
	freed, err := parts[2].ToString()
	granted, acquisitions := parts[3:], countAcquisitions(packet)
	if err != nil || len(granted) != acquisitions || len(freed) != len(packet)-acquisitions { //mutant:pairs-of-an-odd-answer
		return to, unexpected(msg)
	}
	for _, r := range packet {
		var a answer
		if r.op == OpRelease {
			if a.verdict = refused; freed[0] == '1' {
				a.verdict = agreed
			}
			freed = freed[1:]
		} else {
			a.reply, a.err = parsePaired(granted[0], server)
			granted = granted[1:]
		}
		to = append(to, a)
	}
	return to, nil
}

// parsePaired reads what pairsScript returns for an acquisition.
func parsePaired(msg valkey.ValkeyMessage, server time.Duration) (reply, error) {
	if err := msg.Error(); err != nil {
		return reply{}, err
	}
	if !msg.IsArray() {
		text, err := msg.ToString()
		if err != nil {
			return reply{}, unexpected(msg)
		}
		token, err := parseCounter(text)
		if err != nil {
			return reply{}, err
		}
		return reply{verdict: agreed, token: token, server: server}, nil
	}
	rep, err := parseHolder(msg)
	if err != nil {
		return reply{}, err
	}
	parts, err := msg.ToArray()
	if err != nil || len(parts) != 3 {
		return reply{}, unexpected(msg)
	}
	rep.verdict, rep.server = refused, server
	rep.rank, err = parseRank(parts[2])
	return rep, err
}
