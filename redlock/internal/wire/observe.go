package wire

import (
	"math"
	"strconv"
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
	owner, err := parts[0].ToString()
	if err != nil {
		return Answer{}, unexpected(msg)
	}
	ms, err := parts[1].AsInt64()
	if err != nil {
		return Answer{}, unexpected(msg)
	}
	return Answer{Owner: owner, PTTL: lifetime(ms)}, nil //mutant:expiry-invented
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
	if len(parts) < 3 {
		return Answer{}, unexpected(msg)
	}
	a, err := holderAnswer(msg)
	if err != nil {
		return Answer{}, err
	}
	text, err := parts[2].ToString()
	if err != nil {
		return Answer{}, unexpected(msg)
	}
	// Who holds the key is known whatever its counter is.
	if a.Token, err = strconv.ParseUint(text, 10, 64); err != nil || a.Token > MaxToken { //mutant:damaged-counter-hides-the-holder
		a.Token = 0
	}
	a.Verdict = OK
	return a, nil
}
