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

// holderAnswer reads the text of a lock, and its PTTL.
func holderAnswer(owner, pttl valkey.ValkeyMessage) (token uint64, m More, err error) {
	lock, err := owner.ToString()
	if err != nil {
		return 0, m, unexpected(owner)
	}
	ms, err := pttl.AsInt64()
	if err != nil {
		return 0, m, unexpected(pttl)
	}
	m.PTTL = lifetime(ms)
	token, m.Owner = splitLock(lock)
	return token, m, nil
}

// observeAnswer reads what observe.lua returns.
func observeAnswer(_ *Call, msg reply) (Answer, error) {
	parts, err := msg.ToArray()
	if err != nil {
		return Answer{}, msg.unexpected()
	}
	if len(parts) == 0 {
		return Answer{Verdict: OK}, nil
	}
	if len(parts) != 2 {
		return Answer{}, msg.unexpected()
	}
	token, holder, err := holderAnswer(parts[0], parts[1])
	return Answer{Verdict: OK, Token: token}.With(holder), err
}
