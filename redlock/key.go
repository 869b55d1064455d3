package redlock

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
)

// keyset holds the names under which one key's state lives on a node. The braces mark the
// key within its names.
type keyset struct {
	name  string // as the user gave it
	lock  string // owner value, expires with the TTL
	fence string // counter of fencing tokens
	wait  string // queue of those who wait, see queue.go
}

func (c *config) keyset(key string) (keyset, error) {
	switch {
	case key == "":
		return keyset{}, &OptionError{"key", "is empty"}
	case len(key) > MaxKeyLength:
		return keyset{}, &OptionError{"key", fmt.Sprintf("has %d bytes, more than %d", len(key), MaxKeyLength)}
	case key[0] == '}':
		return keyset{}, &OptionError{"key", "starts with }, which would end the braces around it in its names on the servers"}
	}
	// One text, of which the names are parts: each would be an allocation of its own.
	names := c.prefix + ":{" + key + "}:fence" + c.prefix + ":{" + key + "}:wait"
	n := len(c.prefix) + len(":{}") + len(key)
	return keyset{name: key, lock: names[:n], fence: names[:n+len(":fence")], wait: names[n+len(":fence"):]}, nil
}

// record is the record of the sequence, see WithOnce.
func (k *keyset) record() string { return k.lock + ":once" }

// An owner value is the identity, a separator and randomLength characters from a cryptographic source. It is
// new for every attempt, so that what an abandoned attempt left on a server is never mistaken for one's own.
const (
	ownerSeparator = "/"
	randomBytes    = 16
	randomLength   = 22 // base64url of 16 bytes without padding
)

func newOwner(identity string) string {
	var random [randomBytes]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead //mutant:same-owner-always
	var space [128]byte
	owner := append(append(space[:0], identity...), ownerSeparator...)
	return string(base64.RawURLEncoding.AppendEncode(owner, random[:]))
}

// ownerIdentity returns the identity in an owner value, or in the member of the queue whose turn it is, or the whole text when something else wrote it.
func ownerIdentity(owner string) string {
	if identity, ok := memberIdentity(owner); ok {
		return identity
	}
	if cut := len(owner) - randomLength - len(ownerSeparator); cut > 0 && strings.HasPrefix(owner[cut:], ownerSeparator) {
		return owner[:cut]
	}
	return owner
}

// ownerRandom returns the random part of an owner value, or what there is of it.
func ownerRandom(owner string) string { return owner[max(len(owner)-randomLength, 0):] }

func randomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}
