package register

import (
	"context"
	"errors"
)

// Turn is a lease's turn to write a register. It is not for concurrent use.
type Turn struct{}

// Write has a quorum of nodes take the value, in place of what Begin or the Write before has left.
// It tries again while the lease lives and ctx has not ended. A Write after the lease has ended is
// tried once: it is taken unless a later holder has begun.
//
// After nil the value is what all later reads find, until the next Write of this or of a later
// Turn. After ErrUnknown it may be, now or later. ErrSuperseded alone means that no node has taken
// it. Another Write may follow on an error, such as of the old value; what that returns holds for
// both then, because the later one of a Turn takes the place of the earlier one.
//
// Errors: ErrSuperseded, ErrUnknown, *redlock.QuorumError where no node can have taken it, or an
// *redlock.OptionError for a value that is too long.
func (t *Turn) Write(ctx context.Context, value []byte) error {
	return errors.New("register: not built yet")
}
