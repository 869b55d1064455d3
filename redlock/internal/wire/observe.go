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

// observeAnswer reads what observe.lua returns.
func observeAnswer(_ *Call, msg valkey.ValkeyMessage, r reading) Answer {
	if len(r.list(msg)) == 0 {
		return Answer{Verdict: OK}
	}
	parts := r.parts(msg, 2)
	token, holder := r.holder(parts[0], parts[1])
	return Answer{Verdict: OK, Token: token}.With(holder)
}
