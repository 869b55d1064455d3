package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

// counterLifetime is how long a fencing counter is kept after its last use, in milliseconds: a day. Losing it
// is harmless, see acquireScript's hint.
const counterLifetime = "86400000"

// noExpiry stands for the TTL of a key without expiry, which something else than this package wrote. A waiter polls.
const noExpiry = 24 * time.Hour

// roleProbe marks the attempt of a request that reads a node's role instead of a key.
var roleProbe = &attempt{keys: &keyset{}}

// command builds the request's command. Each is an EVALSHA, which valkey-go does not retry by itself: a
// repeated command could land on a server that was restarted in between and lost everything it knew.
//
// With full it is an EVAL, which teaches the script to a server that does not know it. (SCRIPT LOAD would reach any one
// node of a Cluster.)
func (r *request) command(client valkey.Client, full bool) valkey.Completed {
	if r.isProbe() {
		return client.B().Role().Build()
	}
	s, keys, args := scriptOf(r.op), r.keys(), r.arguments()
	if full {
		return client.B().Eval().Script(s.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
	}
	return client.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build()
}

// isProbe reports whether the request reads a node's role instead of a key.
func (r *request) isProbe() bool { return r.attempt == roleProbe }

func (r *request) keys() []string {
	k := r.attempt.keys
	if r.op == OpRelease {
		return []string{k.lock}
	}
	return []string{k.lock, k.fence}
}

func (r *request) arguments() []string {
	a := r.args
	switch r.op {
	case OpAcquire:
		return []string{r.attempt.owner, a.ttl, a.hint, counterLifetime}
	case OpAgree:
		return []string{r.attempt.owner, a.token, counterLifetime}
	case OpExtend:
		return []string{r.attempt.owner, a.ttl, a.token, counterLifetime, a.spread}
	case OpRelease:
		return []string{r.attempt.owner, a.keep, a.notice}
	default:
		return nil
	}
}

// repeatable reports whether the request may be sent again when its connection broke, although it may have been
// carried out.
func (r *request) repeatable() bool { return r.op != OpAcquire && r.op != OpAgree }

// parse reads the server's answer to the request.
func (r *request) parse(result valkey.ValkeyResult) (reply, error) {
	msg, err := result.ToMessage()
	if err != nil {
		return reply{}, err
	}
	switch {
	case r.isProbe():
		return parseRole(msg)
	case r.op == OpAcquire:
		return parseAcquire(msg)
	case r.op == OpExtend:
		return parseExtend(msg)
	case r.op == OpObserve:
		return parseObserve(msg)
	default:
		return parseFlag(msg)
	}
}

func parseAcquire(msg valkey.ValkeyMessage) (reply, error) {
	if msg.IsArray() {
		rep, err := parseHolder(msg)
		rep.verdict = refused
		return rep, err
	}
	text, err := msg.ToString()
	if err != nil {
		return reply{}, unexpected(msg)
	}
	token, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return reply{}, unexpected(msg)
	}
	return reply{verdict: agreed, token: token}, nil
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
	if ms < 0 {
		return reply{owner: owner, pttl: noExpiry}, nil
	}
	return reply{owner: owner, pttl: time.Duration(ms) * time.Millisecond}, nil
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
	if rep.token, err = strconv.ParseUint(text, 10, 64); err != nil {
		return reply{}, unexpected(msg)
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
	if answer == extendOwn || answer == extendRefilled {
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

func parseRole(msg valkey.ValkeyMessage) (reply, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) == 0 {
		return reply{}, unexpected(msg)
	}
	role, err := parts[0].ToString()
	if err != nil {
		return reply{}, unexpected(msg)
	}
	return reply{verdict: agreed, role: role}, nil
}

func unexpected(msg valkey.ValkeyMessage) error {
	return fmt.Errorf("unexpected reply %.200s", msg.String())
}

// isServerError reports whether the server answered with an error, so that the connection is fine.
func isServerError(err error) bool {
	_, ok := valkey.IsValkeyErr(err)
	return ok || strings.HasPrefix(err.Error(), "unexpected reply")
}

// isBroken reports whether the connection was the reason, other than by taking too long.
func isBroken(err error) bool { return !isServerError(err) && !isTimeout(err) }

func isNoScript(err error) bool {
	e, ok := valkey.IsValkeyErr(err)
	return ok && e.IsNoScript()
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &ne) && ne.Timeout())
}
