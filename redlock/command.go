package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/resp"
)

// counterLifetime is how long a fencing counter is kept after its last use, in milliseconds: a day. Losing it
// is harmless, see acquireScript's hint.
const counterLifetime = "86400000" //mutant:counter-lives-shortly

// infoProbe and timeProbe mark the attempts of requests that ask a server about itself.
var (
	infoProbe = &attempt{keys: &keyset{}}
	timeProbe = &attempt{keys: &keyset{}}
)

// command builds the request's command. Each is an EVALSHA, which valkey-go does not retry by itself: a
// repeated command could land on a server that was restarted in between and lost everything it knew.
//
// echo is what its answer has to say besides; empty for nothing. words is a buffer, which is
// returned as it is then.
//
// With full it is an EVAL, which teaches the script to a server that does not know it, unless the script is only for one
// process. (A user may not have the right to SCRIPT LOAD.)
func (r *request) command(client valkey.Client, g *gated, full bool, echo string, words []string) (valkey.Completed, []string) {
	switch r.attempt {
	case infoProbe:
		return client.B().Info().Section(infoSections...).Build(), words
	case timeProbe:
		return client.B().Time().Build(), words
	}
	if r.convoy != nil {
		words = append(words[:0], r.convoy.words...)
		if echo != "" {
			words = append(words, echo)
		}
		return extendManyScript.call(client, words, r.convoy.keys, full), words
	}
	s, teachable := g.scriptOf(r.op)
	words = r.keys(words[:0])
	n := len(words)
	words = r.arguments(words, g)
	if echo != "" {
		words = append(words, echo)
	}
	return s.call(client, words, n, full && teachable), words
}

// call is a call of the script with words, of which the first are keys: with its text, or with what a server knows it by.
func (s *script) call(client builder, words []string, numkeys int, full bool) valkey.Completed {
	keys, args := words[:numkeys], words[numkeys:]
	if full {
		return client.B().Eval().Script(s.text).Numkeys(int64(numkeys)).Key(keys...).Arg(args...).Build()
	}
	return client.B().Evalsha().Sha1(s.sha).Numkeys(int64(numkeys)).Key(keys...).Arg(args...).Build()
}

// builder is a client, or a connection of its own.
type builder interface{ B() valkey.Builder }

// isProbe reports whether the request asks a server about itself.
func (r *request) isProbe() bool {
	return r.attempt == infoProbe || r.attempt == timeProbe || r.op == opTrial
}

// isGated reports whether the request is only for a server that was vouched for. An extension is for any, but does less on
// one that was not.
func (r *request) isGated() bool { //mutant:gate-stops-extensions,gate-stops-releases
	switch r.op {
	case OpAcquire, OpAgree, OpRecall, OpRestore: //mutant:gate-not-for-agreement/2
		return true
	default:
		return false
	}
}

// keys appends the command's keys.
func (r *request) keys(to []string) []string {
	k := r.attempt.keys
	switch r.op {
	case OpRelease:
		to = append(to, k.lock, k.wait)
	case OpAgree:
		return append(to, k.lock, k.fence)
	case opJoin:
		return append(to, k.wait)
	case OpLeave:
		return append(to, k.lock, k.wait)
	case OpRecall, OpRestore:
		return append(to, k.record())
	case opTrial:
		return append(to, k.lock, k.fence, k.wait)
	case OpAcquire:
		to = append(to, k.lock, k.fence, k.wait)
	default:
		to = append(to, k.lock, k.fence)
	}
	if r.attempt.cfg.once != nil {
		to = append(to, k.record())
	}
	return to
}

// arguments appends the command's arguments.
func (r *request) arguments(to []string, g *gated) []string {
	a := r.args
	var once []string
	if o := r.attempt.cfg.once; o != nil {
		once = o.arguments()
	}
	switch r.op {
	case OpAcquire:
		to = append(to, r.attempt.owner, a.ttl, a.hint, counterLifetime, a.skew, r.attempt.member, r.lifetime())
	case OpAgree:
		return append(to, r.attempt.owner, a.token, counterLifetime)
	case opJoin:
		return append(to, r.attempt.member, r.lifetime())
	case OpLeave:
		return append(to, r.attempt.member, a.turn, a.channel)
	case OpRestore:
		return append(to, a.process, a.record, a.lifetime)
	case opTrial:
		return append(to, a.channel, r.attempt.keys.record())
	case OpExtend:
		refill := "0" //mutant:refill-in-quarantine
		if g != nil {
			refill = "1"
		}
		to = append(to, r.attempt.owner, a.ttl, strconv.FormatUint(r.attempt.token, 10), counterLifetime, a.spread, refill)
	case OpRelease:
		to = append(to, r.attempt.owner, a.keep, a.turn, r.leaving(), a.channel)
		if once != nil {
			to = append(to, a.record)
		}
	default:
		return to
	}
	return append(to, once...)
}

// leaving is the member of the queue that a release takes out of it, and an acquisition when it is granted.
func (r *request) leaving() string {
	if r.op == OpRelease && r.args.stays { //mutant:rollback-costs-the-place
		return ""
	}
	return r.attempt.member
}

// lifetime is how long the queue lives that the attempt joins.
func (r *request) lifetime() string {
	if r.attempt.member == "" {
		return ""
	}
	return queueLifetime(r.attempt.cfg.ttl)
}

// repeatable reports whether the request may be sent again when its connection broke, although it may have been
// carried out.
func (r *request) repeatable() bool { return !r.isGated() } //mutant:gate-acquire-repeated

// parse reads the server's answer to the request.
func (r *request) parse(msg valkey.ValkeyMessage, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	switch {
	case r.attempt == infoProbe:
		return parseInfoReply(msg)
	case r.attempt == timeProbe:
		return parseTime(msg)
	case r.op == OpAcquire:
		return parseAcquire(msg)
	case r.convoy != nil:
		digits, err := msg.ToString()
		if err != nil || len(digits) != len(r.convoy.leases) {
			return reply{}, unexpected(msg)
		}
		return reply{verdict: agreed, extend: extendOwn, digits: digits}, nil
	case r.op == OpExtend:
		return parseExtend(msg)
	case r.op == OpObserve:
		return parseObserve(msg)
	case r.op == OpRelease:
		return parseRelease(msg)
	case r.op == OpRecall:
		return parseRecall(msg)
	case r.op == OpRestore:
		return parseRestore(msg)
	case r.op == opTrial:
		return parseTrial(msg)
	default:
		return parseFlag(msg)
	}
}

// parseAcquire reads what acquireScript returns.
func parseAcquire(msg valkey.ValkeyMessage) (reply, error) {
	if msg.IsArray() {
		parts, err := msg.ToArray()
		if err != nil {
			return reply{}, unexpected(msg)
		}
		switch len(parts) {
		case 3:
			return parseDone(parts)
		case 4:
			return parseUnknown(parts)
		}
		rep, err := parseHolder(msg)
		if err != nil {
			return reply{}, err
		}
		rep.verdict = refused
		if len(parts) != 6 {
			return reply{}, unexpected(msg)
		}
		if rep.rank, err = parseRank(parts[5]); err != nil {
			return reply{}, err
		}
		if !parts[4].IsNil() {
			if text, err := parts[4].ToString(); err == nil {
				rep.holds = parseRecord(text)
			}
		}
		rep.server, err = parseClock(parts[2], parts[3])
		return rep, err
	}
	text, err := msg.ToString()
	if err != nil {
		return reply{}, unexpected(msg)
	}
	counter, rest, _ := strings.Cut(text, " ")
	seconds, rest, _ := strings.Cut(rest, " ")
	micros, recorded, _ := strings.Cut(rest, " ")
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	if err1 != nil || err2 != nil {
		return reply{}, unexpected(msg)
	}
	server, err := serverTime(s, us)
	if err != nil {
		return reply{}, err
	}
	token, err := parseCounter(counter)
	if err != nil {
		return reply{}, err
	}
	rep := reply{verdict: agreed, token: token, server: server}
	if recorded != "" {
		if rep.record = parseRecord(recorded); rep.record == nil {
			return reply{}, unexpected(msg)
		}
	}
	return rep, nil
}

func parseRank(msg valkey.ValkeyMessage) (int, error) {
	rank, err := msg.AsInt64()
	if err != nil {
		return 0, unexpected(msg)
	}
	return int(rank), nil
}

// parseDone reads a refusal because of the sequence.
func parseDone(parts []valkey.ValkeyMessage) (reply, error) {
	text, err := parts[0].ToString()
	rep := reply{verdict: refused}
	if err == nil {
		rep.record = parseRecord(text)
	}
	if rep.record == nil {
		return reply{}, unexpected(parts[0])
	}
	rep.server, err = parseClock(parts[1], parts[2])
	return rep, err
}

// parseUnknown reads that a node does not know the sequence.
func parseUnknown(parts []valkey.ValkeyMessage) (rep reply, err error) {
	if rep.unknown, err = parts[0].ToString(); err != nil || rep.unknown == "" {
		return reply{}, unexpected(parts[0])
	}
	text, err := parts[3].ToString()
	if err != nil {
		return reply{}, unexpected(parts[3])
	}
	rep.verdict, rep.record = failed, parseRecord(text)
	rep.server, err = parseClock(parts[1], parts[2])
	return rep, err
}

// parseRecall reads what recallScript returns. A node that does not know the sequence has refused.
func parseRecall(msg valkey.ValkeyMessage) (reply, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) != 4 {
		return reply{}, unexpected(msg)
	}
	known, err1 := parts[0].AsInt64()
	process, err2 := parts[1].ToString()
	text, err3 := parts[2].ToString()
	left, err4 := parts[3].AsInt64()
	if err := errors.Join(err1, err2, err3, err4); err != nil || known != 1 && process == "" {
		return reply{}, unexpected(msg)
	}
	rep := reply{verdict: agreed, record: parseRecord(text), pttl: MaxKeep}
	if known != 1 {
		rep.verdict, rep.unknown = refused, process
	}
	if left >= 0 {
		rep.pttl = min(MaxKeep, lifetime(left))
	}
	return rep, nil
}

// lifetime is what is left of a key's life by its PTTL, and NoExpiry where it has none.
func lifetime(pttl int64) time.Duration {
	if pttl < 0 || pttl >= int64(NoExpiry/time.Millisecond) {
		return NoExpiry
	}
	return time.Duration(pttl) * time.Millisecond
}

// parseRestore reads what restoreScript returns.
func parseRestore(msg valkey.ValkeyMessage) (reply, error) {
	switch answer, err := msg.AsInt64(); {
	case err != nil || answer < 0 || answer > 2:
		return reply{}, unexpected(msg)
	case answer == 0:
		return reply{verdict: refused}, nil
	default:
		return reply{verdict: agreed, wrote: answer == 1}, nil
	}
}

// parseTime reads a reply to TIME.
func parseTime(msg valkey.ValkeyMessage) (reply, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) != 2 {
		return reply{}, unexpected(msg)
	}
	server, err := parseClock(parts[0], parts[1])
	return reply{verdict: agreed, server: server}, err
}

func parseClock(seconds, micros valkey.ValkeyMessage) (time.Duration, error) {
	s, err := seconds.AsInt64()
	if err != nil {
		return 0, unexpected(seconds)
	}
	us, err := micros.AsInt64()
	if err != nil {
		return 0, unexpected(micros)
	}
	return serverTime(s, us)
}

// parseHolder reads {owner value, PTTL, ...}.
func parseHolder(msg valkey.ValkeyMessage) (reply, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) < 2 {
		return reply{}, unexpected(msg)
	}
	owner, err := parts[0].ToString()
	if err != nil {
		return reply{}, unexpected(msg)
	}
	ms, err := parts[1].AsInt64()
	if err != nil {
		return reply{}, unexpected(msg)
	}
	return reply{owner: owner, pttl: lifetime(ms)}, nil //mutant:expiry-invented
}

func parseObserve(msg valkey.ValkeyMessage) (reply, error) {
	parts, err := msg.ToArray()
	if err != nil {
		return reply{}, unexpected(msg)
	}
	if len(parts) == 0 {
		return reply{verdict: agreed}, nil
	}
	if len(parts) < 3 {
		return reply{}, unexpected(msg)
	}
	rep, err := parseHolder(msg)
	if err != nil {
		return reply{}, err
	}
	text, err := parts[2].ToString()
	if err != nil {
		return reply{}, unexpected(msg)
	}
	// Who holds the key is known whatever its counter is.
	if rep.token, err = strconv.ParseUint(text, 10, 64); err != nil || rep.token > maxToken { //mutant:damaged-counter-hides-the-holder
		rep.token = 0
	}
	rep.verdict = agreed
	return rep, nil
}

func parseExtend(msg valkey.ValkeyMessage) (reply, error) {
	answer, err := msg.AsInt64()
	if err != nil || answer < extendOther || answer > extendGone {
		return reply{}, unexpected(msg)
	}
	rep := reply{verdict: refused, extend: int(answer)}
	if answer == extendOwn || answer == extendRefilled { //mutant:refill-counts-later/2
		rep.verdict = agreed
	}
	return rep, nil
}

// parseRelease reads what releaseScript returns.
func parseRelease(msg valkey.ValkeyMessage) (reply, error) {
	answer, err := msg.AsInt64()
	if err != nil || answer < 0 || answer > 3 {
		return reply{}, unexpected(msg)
	}
	rep := reply{verdict: refused, unwritten: answer >= 2}
	if answer%2 == 1 {
		rep.verdict = agreed
	}
	return rep, nil
}

func parseFlag(msg valkey.ValkeyMessage) (reply, error) {
	done, err := msg.AsInt64()
	if err != nil {
		return reply{}, unexpected(msg)
	}
	if done == 1 {
		return reply{verdict: agreed}, nil
	}
	return reply{verdict: refused}, nil
}

func parseInfoReply(msg valkey.ValkeyMessage) (reply, error) {
	text, err := msg.ToString()
	if err != nil {
		return reply{}, unexpected(msg)
	}
	info, err := parseInfo(text)
	return reply{verdict: agreed, info: info}, err
}

// errUnexpected is the error of a reply that is not what the command answers.
var errUnexpected = errors.New("unexpected reply")

func unexpected(msg valkey.ValkeyMessage) error {
	return fmt.Errorf("%w %.200s", errUnexpected, msg.String())
}

// isServerError reports whether the server answered, if only with an error, so that the connection is fine.
func isServerError(err error) bool {
	if refused := (*resp.Error)(nil); errors.As(err, &refused) { //mutant:refused-connection-is-fine
		return false
	}
	var answered *valkey.ValkeyError // valkey.Nil too
	var known *ConditionError
	return errors.As(err, &answered) || errors.As(err, &known) || errors.Is(err, errUnexpected)
}

// isBroken reports whether the connection was the reason, other than by taking too long.
func isBroken(err error) bool { return !isServerError(err) && !isTimeout(err) }

func isNoScript(err error) bool {
	e, ok := valkey.IsValkeyErr(err)
	return ok && e.IsNoScript()
}

// isTimeout reports whether something took too long. A connection that a kernel has found dead is broken, although its error calls itself a timeout.
func isTimeout(err error) bool {
	var ne net.Error
	if errors.Is(err, syscall.ETIMEDOUT) { //mutant:dead-connection-is-slow
		return false
	}
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &ne) && ne.Timeout())
}
