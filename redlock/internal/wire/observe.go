package wire

import (
	"math"
	"time"

	"github.com/valkey-io/valkey-go"
)

// NoExpiry is the TTL of a key that does not expire.
const NoExpiry time.Duration = math.MaxInt64

// lifetime is what is left of a key's life by its PTTL, and NoExpiry where it has none.
func lifetime(pttl int64) time.Duration {
	if pttl < 0 || pttl >= int64(NoExpiry/time.Millisecond) {
		return NoExpiry
	}
	return time.Duration(pttl) * time.Millisecond
}

// holderAnswer reads {owner value, PTTL, ...}.
func holderAnswer(msg valkey.ValkeyMessage) (token uint64, m More, err error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) < 2 {
		return 0, m, unexpected(msg)
	}
	lock, err := parts[0].ToString()
	if err != nil {
		return 0, m, unexpected(msg)
	}
	ms, err := parts[1].AsInt64()
	if err != nil {
		return 0, m, unexpected(msg)
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
	token, holder, err := holderAnswer(msg.ValkeyMessage)
	if err != nil {
		return Answer{}, err
	}
	if len(parts) != 2 {
		return Answer{}, msg.unexpected()
	}
	return Answer{Verdict: OK, Token: token}.With(holder), nil
}
