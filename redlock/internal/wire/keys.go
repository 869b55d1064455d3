package wire

import (
	"crypto/rand"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// Keys are the names under which one key's state lives on a node. The braces mark the key within
// its names.
type Keys struct {
	Name   string // as the user gave it
	Lock   string // the key that holds the lock; expires with the TTL
	Fences string // sorted set of the counters of fencing tokens, which all keys of the prefix share
	Slot   string // the member of the key's counter in that set
}

// slots is how many counters a prefix has. Keys share counters, so the memory for tokens does not
// depend on the number of keys, and no counter need be forgotten. If another key has raised the
// counter, the next token of this key leaves a gap. If it was raised beyond what is proposed, the
// acquisition costs a second round: the more counters there are, the less often that happens. With
// four processes of 64 goroutines it is 2 % with a thousand counters, and 0.4 % with four thousand,
// where ZADD takes hardly longer. With sixteen thousand it takes a third longer.
const slots = 1 << 12

// slotOf spreads keys over the counters: FNV-1a of 32 bits, folded. All processes must agree on it
// for as long as there are counters.
func slotOf(key string) uint32 {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return (h>>12 ^ h) % slots
}

// The endings of names that belong to the prefix and to no key.
const (
	fences   = ":fences"
	roster   = ":roster"
	reserved = ":nodes"
)

// NewKeys makes the names of a key.
func NewKeys(prefix, key string) Keys {
	// The names are parts of one text, because each would be an allocation of its own.
	var space [128]byte
	b := append(append(append(append(space[:0], prefix...), ":{"...), key...), "}"...)
	n := len(b)
	b = append(append(b, prefix...), fences...)
	m := len(b)
	names := string(strconv.AppendUint(b, uint64(slotOf(key)), 10))
	return Keys{Name: key, Lock: names[:n], Fences: names[n:m], Slot: names[m:]}
}

// Lock returns the text of a lock: a fencing token and the owner value.
func Lock(token, owner string) string { return token + " " + owner }

// splitLock returns the parts of a lock. A reservation, or a text of another program, is an owner
// without a token.
func splitLock(lock string) (token uint64, owner string) {
	text, rest, ok := strings.Cut(lock, " ")
	if _, _, _, made := splitOwner(rest); !ok || !made || text == "" || !isDigits(text) {
		return 0, lock
	}
	token, err := strconv.ParseUint(text, 10, 64)
	if err != nil || token > MaxToken {
		token = 0
	}
	return token, rest
}

// Channels returns the prefix of the names of the channels on which waiters are called.
func Channels(prefix string) string { return prefix + ":call:" }

// An owner value is the identity, a separator and randomLength characters from a cryptographic
// source. Each attempt draws a new one, so a key that an abandoned attempt left on a server is
// never taken for one of a later attempt. A payload follows behind a separator of its own, escaped
// as in the query of a URL, so it has no ownerSeparator. The text behind the last ownerSeparator
// therefore tells whether there is a payload, whatever the identity is.
const (
	ownerSeparator   = "/"
	payloadSeparator = "?"
	randomBytes      = 16
	randomLength     = 22 // base64url of 16 bytes without padding
)

// MaxPayloadLength bounds a payload, in bytes.
const MaxPayloadLength = 1024

// NewOwner makes an owner value. An empty payload is none.
func NewOwner(identity, payload string) string {
	var random [randomBytes]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	var space [128]byte
	owner := append(append(space[:0], identity...), ownerSeparator...)
	owner = base64.RawURLEncoding.AppendEncode(owner, random[:])
	if payload != "" {
		owner = append(append(owner, payloadSeparator...), url.QueryEscape(payload)...)
	}
	return string(owner)
}

// splitOwner returns the parts of an owner value; the payload stays escaped. It is not ok for a
// text of another program.
func splitOwner(owner string) (identity, random, payload string, ok bool) {
	cut := strings.LastIndex(owner, ownerSeparator)
	rest := owner[cut+len(ownerSeparator):]
	if cut <= 0 || len(rest) < randomLength {
		return "", "", "", false
	}
	random, rest = rest[:randomLength], rest[randomLength:]
	payload, ok = strings.CutPrefix(rest, payloadSeparator)
	if !ok && rest != "" {
		return "", "", "", false
	}
	return owner[:cut], random, payload, true
}

// Owner has the parts of an owner value. A reservation has the identity of the waiter and no
// payload. A text of another program is an identity as a whole.
type Owner struct {
	Identity, Payload string
	Random            string // the last characters where there is no random part
}

// ParseOwner reads an owner value. It drops a payload that is too long, or that NewOwner would have
// escaped in another way.
func ParseOwner(owner string) Owner {
	identity, reserved := ReservedFor(owner)
	name, random, escaped, ok := splitOwner(owner)
	if !ok {
		name, random = owner, owner[max(len(owner)-randomLength, 0):]
	}
	if reserved {
		return Owner{Identity: identity, Random: random}
	}
	payload, err := url.QueryUnescape(escaped)
	if err != nil || len(payload) > MaxPayloadLength || url.QueryEscape(payload) != escaped {
		payload = ""
	}
	return Owner{Identity: name, Payload: payload, Random: random}
}

// NewProcess makes a unique name for a process that waits.
func NewProcess() string { return RandomText(randomBytes) }

// RandomText returns n bytes from a cryptographic source, as base64url.
func RandomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}
