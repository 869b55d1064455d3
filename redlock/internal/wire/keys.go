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
	Lock   string // see Lock, expires with the TTL
	Fences string // hash of the counters of fencing tokens, of all keys of the prefix
	Slot   string // the field of this key's

	slot uint32 // the same
}

// slots is how many counters a prefix has. Keys share them, so what tokens cost a node does not
// depend on how many keys there are, and need not be forgotten: some 1.5 MB where all are in use. A
// counter that another key has raised lets this key's next token leave a gap. Where it was raised
// beyond the hint, by a client whose clock is ahead or by many grants, nodes may count differently,
// and the acquisition costs a second round: the more counters, the less often.
const slots = 1 << 14

// slotOf spreads keys over the counters: FNV-1a of 32 bits, folded. All processes must agree on it,
// for as long as there are counters.
func slotOf(key string) uint32 {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	return (h>>14 ^ h) % slots
}

// What follows a prefix in the names that stand for no key.
const (
	fences   = ":fences"
	roster   = ":roster"
	reserved = ":nodes"
)

// NewKeys makes the names of a key.
func NewKeys(prefix, key string) Keys {
	// One text, of which the names are parts: each would be an allocation of its own.
	var space [128]byte
	b := append(append(append(append(space[:0], prefix...), ":{"...), key...), "}"...)
	n := len(b)
	b = append(append(b, prefix...), fences...)
	m := len(b)
	slot := slotOf(key)
	names := string(strconv.AppendUint(b, uint64(slot), 10))
	return Keys{Name: key, Lock: names[:n], Fences: names[n:m], Slot: names[m:], slot: slot}
}

// Lock is the text of a lock: a fencing token and the owner value. While it is acquired the token
// is the hint, which is what nodes make of it if they can.
func Lock(token, owner string) string { return token + " " + owner }

// splitLock returns the parts of a lock. In what something else has written all is the owner.
func splitLock(lock string) (token uint64, owner string) {
	text, rest, ok := strings.Cut(lock, " ")
	if _, _, _, made := splitOwner(rest); !ok || !made || text == "" || !isDigits(text) {
		return 0, lock
	} else if _, member := MemberIdentity(lock); member {
		return 0, lock
	}
	token, err := strconv.ParseUint(text, 10, 64)
	if err != nil || token > MaxToken {
		token = 0
	}
	return token, rest
}

// Wait is the queue of those who wait for the key, see lib/join.lua. Scripts make this name
// themselves, where they look at a queue.
func (k *Keys) Wait() string { return k.Lock + ":wait" }

// Channels is what the names of the channels of those who wait begin with.
func Channels(prefix string) string { return prefix + ":call:" }

// An owner value is the identity, a separator and randomLength characters from a cryptographic
// source. It is new for every attempt, so that what an abandoned attempt left on a server is never
// mistaken for one's own. Where there is a payload, a separator and the payload follow, escaped as
// in the query of a URL. What stands behind the last ownerSeparator therefore tells whether there
// is one, whatever the identity is.
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

// splitOwner returns the parts of an owner value, the payload as it is escaped. It is not ok for a
// text that something else wrote.
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

// Owner is what an owner value says. A member of the queue, whose turn it is, has an identity
// alone, and what something else wrote is one.
type Owner struct {
	Identity, Payload string
	Random            string // or what there is of it
}

// ParseOwner reads an owner value. There is no payload where NewOwner would have written another
// text for it.
func ParseOwner(owner string) Owner {
	identity, member := MemberIdentity(owner)
	name, random, escaped, ok := splitOwner(owner)
	if !ok {
		name, random = owner, owner[max(len(owner)-randomLength, 0):]
	}
	if member {
		return Owner{Identity: identity, Random: random}
	}
	payload, err := url.QueryUnescape(escaped)
	if err != nil || len(payload) > MaxPayloadLength || url.QueryEscape(payload) != escaped {
		payload = ""
	}
	return Owner{Identity: name, Payload: payload, Random: random}
}

// NewProcess makes a name for a process that waits, which no other has.
func NewProcess() string { return RandomText(randomBytes) }

// RandomText is n bytes from a cryptographic source, as text.
func RandomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}
