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
func holderAnswer(msg valkey.ValkeyMessage) (Answer, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) < 2 {
		return Answer{}, unexpected(msg)
	}
	lock, err := parts[0].ToString()
	if err != nil {
		return Answer{}, unexpected(msg)
	}
	ms, err := parts[1].AsInt64()
	if err != nil {
		return Answer{}, unexpected(msg)
	}
	a := Answer{PTTL: lifetime(ms)} //mutant:expiry-invented
	a.Token, a.Owner = splitLock(lock)
	return a, nil
}

// observeAnswer reads what observe.lua returns.
func observeAnswer(_ *Call, msg valkey.ValkeyMessage) (Answer, error) {
	parts, err := msg.ToArray()
	if err != nil {
		return Answer{}, unexpected(msg)
	}
	if len(parts) == 0 {
		return Answer{Verdict: OK}, nil
	}
	a, err := holderAnswer(msg)
	if err != nil {
		return Answer{}, err
	}
	a.Verdict = OK
	return a, nil
}
