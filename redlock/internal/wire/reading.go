package wire

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"
)

// ErrUnexpected: the reply is not one that the command can have.
var ErrUnexpected = errors.New("unexpected reply")

// reading reads the parts of a reply. What it returns counts only if there is no error in the end.
type reading struct {
	err *error // where the first is kept
}

// fail keeps an error; nil is none.
func (r reading) fail(err error) { *r.err = cmp.Or(*r.err, err) }

// expect fails with an ErrUnexpected that has the beginning of the text, if a part is not as it can
// be.
func (r reading) expect(is bool, part valkey.ValkeyMessage) {
	if !is {
		r.fail(fmt.Errorf("%w %.200s", ErrUnexpected, part.String()))
	}
}

func (r reading) text(part valkey.ValkeyMessage) string {
	text, err := part.ToString()
	r.expect(err == nil, part)
	return text
}

func (r reading) number(part valkey.ValkeyMessage) int64 {
	n, err := part.AsInt64()
	r.expect(err == nil, part)
	return n
}

// list returns a list of any length.
func (r reading) list(part valkey.ValkeyMessage) []valkey.ValkeyMessage {
	all, err := part.ToArray()
	r.expect(err == nil, part)
	return all
}

// parts returns a list of n.
func (r reading) parts(part valkey.ValkeyMessage, n int) []valkey.ValkeyMessage {
	all := r.list(part)
	if r.expect(len(all) == n, part); len(all) != n {
		return make([]valkey.ValkeyMessage, n)
	}
	return all
}

// clock reads the two numbers of TIME.
func (r reading) clock(seconds, micros valkey.ValkeyMessage) time.Duration {
	server, err := ServerTime(r.number(seconds), r.number(micros))
	r.fail(err)
	return server
}

// timed reads the two numbers of TIME at the beginning of a text, and returns the rest.
func (r reading) timed(part valkey.ValkeyMessage) (server time.Duration, rest string) {
	seconds, rest, _ := strings.Cut(r.text(part), " ")
	micros, rest, _ := strings.Cut(rest, " ")
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	r.expect(err1 == nil && err2 == nil, part)
	server, err := ServerTime(s, us)
	r.fail(err)
	return server, rest
}

// counter reads the token that a server has raised its counter to, or the next that would.
func (r reading) counter(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > MaxToken {
		r.fail(DamagedCounter(text))
	}
	return n
}

// holder reads the text of a lock, and its PTTL.
func (r reading) holder(lock, pttl valkey.ValkeyMessage) (token uint64, m More) {
	m.PTTL = lifetime(r.number(pttl))
	token, m.Owner = splitLock(r.text(lock))
	return token, m
}
