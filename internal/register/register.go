package register

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock"
)

// MaxValue is the maximum size of a value, in bytes.
const MaxValue = 4096

// Errors of a Turn. The package also returns a *redlock.QuorumError with the error of each node, a
// *redlock.OptionError, redlock.ErrClosed, the error of the lease's Err, and ctx's own error.
var (
	// ErrSuperseded means that a holder with a larger fencing token has read the register. It is
	// permanent for this lease, which has ended or is about to. The exception is a fencing token
	// that went back: nodes that lost their counters and whose clocks are behind give smaller
	// tokens until they have caught up.
	ErrSuperseded = errors.New("register: a later holder has read it, or fencing tokens went back when nodes lost their data")
	// ErrUnknown means that no quorum is known to have taken a write, and that the write may still
	// come into force, at once or with the next read. The holder must not act on it. The error
	// wraps the reason, such as ErrSuperseded or ctx's own error.
	ErrUnknown = errors.New("register: it is not known whether the value was written")
)

// Operations, as errors and tracers name them.
const (
	opRead    = "read"
	opWrite   = "write"
	opRestore = "restore"
)

// mostTogether is how many registers one command reads. It is small because a server does nothing
// else meanwhile.
const mostTogether = 32

// Register is a register of a Quorum. The methods of the zero value return an error.
type Register struct {
	q    *redlock.Quorum
	key  string
	keep time.Duration
}

// Of returns the register of a key, which may be the key of a lease or any other one. The nodes
// keep the register for keep after it was last begun or written, or for longer if an earlier call
// said so. Of does no I/O. An invalid key or duration is an *redlock.OptionError of the methods.
func Of(q *redlock.Quorum, key string, keep time.Duration) Register {
	return Register{q, key, keep}
}

// State is the result of reading one register.
type State struct {
	Value  []byte    // empty for a register that was never written
	Ballot uint64    // the fencing token of the lease under which it was written; 0 for none
	Nodes  int       // heard nodes that are known to have exactly this
	Now    time.Time // the median of the nodes' clocks; the same in all states of one call
	name   string    // of the key
}

// Unreadable adds to the error of a value's parser where the value is, and what to do.
func (s State) Unreadable(err error) error {
	return fmt.Errorf("%q cannot be read: use the same version of Tenure in all processes; if no version wrote it, remove the key on each node, and what it said is forgotten: %w", s.name, err)
}

// Read reads the receiver and the other registers, all of one Quorum, without a promise: 32 in one
// command a node. The states are in this order, and each is what a quorum of nodes knows. They
// include each write for which Write returned nil before. A write that is under way may or may not
// be seen.
//
// Read restores a register that too few nodes know. Errors are those of the package; an error of
// one register fails the call.
func (r Register) Read(ctx context.Context, also ...Register) ([]State, error) {
	all := append([]Register{r}, also...)
	var states []State
	for some := range slices.Chunk(all, mostTogether) {
		rd, err := newReading(some)
		if err == nil {
			err = rd.read(ctx)
		}
		if err != nil {
			return nil, err
		}
		states = append(states, rd.states()...)
	}
	return states, nil
}

// Begin reads the register under the lease, and has a quorum of nodes promise to refuse writes of
// earlier leases. In the same command it reads the other registers as Read does. The states are
// those of the receiver and the others, in this order.
//
// The lease may be of any key, but all writers of a register must hold leases of the same key: else
// they supersede each other. A lease has one Turn: after an error of Begin it is of no more use for
// this register, and is to be released.
//
// Errors: ErrSuperseded, or those of the package.
func (r Register) Begin(ctx context.Context, l *redlock.Lease, also ...Register) (*Turn, []State, error) {
	rd, err := newReading(append([]Register{r}, also...))
	if err == nil {
		err = l.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	rd.ballot = l.FencingToken()
	if err := rd.read(ctx); err != nil {
		return nil, nil, err
	}
	return &Turn{reading: rd, lease: l}, rd.states(), nil
}

// name returns the register's key on the nodes.
func (r Register) name(q bridge.Quorum) (string, error) {
	if r.keep <= 0 || r.keep > redlock.MaxKeep {
		return "", &redlock.OptionError{Option: "keep", Reason: fmt.Sprintf("a register is not kept for %v", r.keep)}
	}
	return q.Name(r.key, ":register")
}
