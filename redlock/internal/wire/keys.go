package wire

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

// Keys are the names under which one key's state lives on a node. The braces mark the key within
// its names.
type Keys struct {
	Name  string // as the user gave it
	Lock  string // owner value, expires with the TTL
	Fence string // counter of fencing tokens
	Wait  string // queue of those who wait, see lib/join.lua
}

// NewKeys makes the names of a key.
func NewKeys(prefix, key string) Keys {
	// One text, of which the names are parts: each would be an allocation of its own.
	names := prefix + ":{" + key + "}:fence" + prefix + ":{" + key + "}:wait"
	n := len(prefix) + len(":{}") + len(key)
	return Keys{Name: key, Lock: names[:n], Fence: names[:n+len(":fence")], Wait: names[n+len(":fence"):]}
}

// Record is the record of the key's sequence.
func (k *Keys) Record() string { return k.Lock + ":once" }

// Channels is what the names of the channels of those who wait begin with.
func Channels(prefix string) string { return prefix + ":call:" }

// An owner value is the identity, a separator and randomLength characters from a cryptographic
// source. It is new for every attempt, so that what an abandoned attempt left on a server is never
// mistaken for one's own.
const (
	ownerSeparator = "/"
	randomBytes    = 16
	randomLength   = 22 // base64url of 16 bytes without padding
)

// NewOwner makes an owner value.
func NewOwner(identity string) string {
	var random [randomBytes]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead //mutant:same-owner-always
	var space [128]byte
	owner := append(append(space[:0], identity...), ownerSeparator...)
	return string(base64.RawURLEncoding.AppendEncode(owner, random[:]))
}

// OwnerIdentity returns the identity in an owner value, or in the member of the queue whose turn it
// is, or the whole text when something else wrote it.
func OwnerIdentity(owner string) string {
	if identity, ok := MemberIdentity(owner); ok {
		return identity
	}
	if cut := len(owner) - randomLength - len(ownerSeparator); cut > 0 && strings.HasPrefix(owner[cut:], ownerSeparator) {
		return owner[:cut]
	}
	return owner
}

// OwnerRandom returns the random part of an owner value, or what there is of it.
func OwnerRandom(owner string) string { return owner[max(len(owner)-randomLength, 0):] }

// NewProcess makes a name for a process that waits, which no other has.
func NewProcess() string { return RandomText(randomBytes) }

// RandomText is n bytes from a cryptographic source, as text.
func RandomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}
