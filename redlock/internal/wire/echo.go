package wire

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/resp"
)

// Echoes are numbers that tell the commands over a connection from each other: so many that none is
// under way twice, and beginning anywhere, so that none is another process's.
type Echoes struct {
	first int64
	count int
	texts []string // made once: each would be an allocation a command
	most  int
}

// NewEchoes makes numbers for so many commands under way at a time.
func NewEchoes(underWay int) Echoes { return Echoes{first: 1 + rand.Int64N(1<<40), most: 2 * underWay} }

// Next is the next number, as the argument that asks for it.
func (e *Echoes) Next() string {
	i := e.count % e.most
	e.count++
	if i == len(e.texts) {
		e.texts = append(e.texts, strconv.FormatInt(e.first+int64(i), 10))
	}
	return e.texts[i]
}

// ErrOutOfStep is why nothing counts that comes over a connection.
var ErrOutOfStep error = &resp.Error{What: "the answer to another command"}

// reply is what a script returns, without its echo; or what another command answers.
type reply struct {
	valkey.ValkeyMessage

	text  string // where it is one that had an echo in front
	plain bool
}

// ToString returns a text.
func (r reply) ToString() (string, error) {
	if r.plain {
		return r.text, nil
	}
	return r.ValkeyMessage.ToString()
}

// AsInt64 returns a number.
func (r reply) AsInt64() (int64, error) {
	if r.plain {
		return strconv.ParseInt(r.text, 10, 64)
	}
	return r.ValkeyMessage.AsInt64()
}

// unexpected is the error of one that is not what its script returns.
func (r reply) unexpected() error {
	if r.plain {
		return fmt.Errorf("%w %.200q", ErrUnexpected, r.text)
	}
	return unexpected(r.ValkeyMessage)
}

// unwrap takes the answer of a script out of what is returned with its echo, see frame.lua.
func unwrap(msg valkey.ValkeyMessage, echo string) (r reply, err error) {
	var said string
	if msg.IsString() {
		said, _ = msg.ToString()
		said, r.text, r.plain = strings.Cut(said, " ")
	} else if parts, _ := msg.ToArray(); len(parts) == 2 {
		r.ValkeyMessage = parts[0]
		said, _ = parts[1].ToString()
		err = parts[0].Error()
	}
	if said != echo {
		return reply{}, ErrOutOfStep
	}
	return r, err
}
