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

// MaxValue bounds a value, in bytes.
const MaxValue = 4096

// Errors of a Turn. Others are a *redlock.QuorumError, with the error of each node; a
// *redlock.OptionError; redlock.ErrClosed; what the lease's Err returns; and ctx's own error.
var (
	// ErrSuperseded means that a holder with a larger fencing token has read the register. It is
	// permanent for this lease, which has ended or is about to, unless tokens have gone back: nodes
	// that have lost their counters and whose clocks are behind give such, until they have caught
	// up.
	ErrSuperseded = errors.New("register: a later holder has read it, or fencing tokens went back when nodes lost their data")
	// ErrUnknown means that no quorum is known to have taken a write, and that it may come into
	// force all the same: at once, or with the next read. The holder must not act on it. It comes
	// with the reason, which errors.Is finds too, such as ErrSuperseded or ctx's own error.
	ErrUnknown = errors.New("register: it is not known whether the value was written")
)

// What the nodes are asked, for errors and tracers.
const (
	opRead    = "read"
	opWrite   = "write"
	opRestore = "restore"
)

// mostTogether is how many registers one command reads. A server does nothing else meanwhile.
const mostTogether = 32

// Register names a register. The zero value is none: its methods return an error.
type Register struct {
	q    *redlock.Quorum
	key  string
	keep time.Duration
}

// Of returns the register of a key, which may be that of a lease or any other one. The nodes keep
// it for keep after it was last begun or written, or for longer if that was said before. It does no
// I/O. A key or a duration that cannot be one is an *redlock.OptionError of the methods.
func Of(q *redlock.Quorum, key string, keep time.Duration) Register {
	return Register{q, key, keep}
}

// State is what a read has found.
type State struct {
	Value  []byte    // empty for a register that was never written
	Ballot uint64    // the fencing token of the lease under which it was written; 0 for none
	Nodes  int       // that are known to have exactly this, of those that were heard
	Now    time.Time // the median of the nodes' clocks; the same in all states of one call
	name   string    // of the key
}

// Unreadable says of a value that its owner cannot read where that is, and what to do.
func (s State) Unreadable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%q cannot be read: use the same version of Tenure in all processes; if no version wrote it, remove the key on each node, and what it said is forgotten: %w", s.name, err)
}

// Read reads registers of one Quorum without a promise, 32 of them in one command a node: that of
// the receiver and the others, in this order. Each is what a quorum of nodes knows. A write that is
// under way may or may not be seen, and one that Write has returned nil for before is.
//
// Where too few nodes know a register it restores it. Errors are those of the package; one for any
// of the registers is one for all.
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

// Begin reads the register under the lease, and has a quorum of nodes promise to take no write of
// an earlier lease any more. In the same command it reads other registers without a promise, as
// Read does. The states are those of the receiver and the others, in this order.
//
// The lease may be of any key: who writes the register must hold a lease of the same key, or they
// are superseded by each other. A lease has one Turn: after an error of Begin it is of no more use
// for this register, and is to be released.
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

// name is what the register is called on nodes.
func (r Register) name(q bridge.Quorum) (string, error) {
	if r.keep <= 0 || r.keep > redlock.MaxKeep {
		return "", &redlock.OptionError{Option: "keep", Reason: fmt.Sprintf("a register is not kept for %v", r.keep)}
	}
	return q.Name(r.key, ":register")
}
