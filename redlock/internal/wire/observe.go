package wire

import (
	"math"
	"time"

	"github.com/valkey-io/valkey-go"
)

// NoExpiry is the TTL of a key that does not expire.
const NoExpiry time.Duration = math.MaxInt64

// lifetime turns a PTTL into a duration: NoExpiry for a key that does not expire.
func lifetime(pttl int64) time.Duration {
	if pttl < 0 || pttl >= int64(NoExpiry/time.Millisecond) {
		return NoExpiry
	}
	return time.Duration(pttl) * time.Millisecond
}

// observeAnswer reads what observe.lua returns. A reservation is nobody's lease, so nobody has the
// key. One that does not expire was written by something else, which has it.
func observeAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	if len(r.list(msg)) == 0 {
		return Answer{Verdict: OK}
	}
	parts := r.parts(msg, 2)
	token, holder := r.holder(parts[0], parts[1])
	if _, reserved := ReservedFor(holder.Owner); reserved && holder.PTTL != NoExpiry {
		return Answer{Verdict: OK}
	}
	return Answer{Verdict: OK, Token: token}.With(holder)
}
