package main

import (
	"context"
	"errors"
	"fmt"
)

// store is a resource that several processes write to, one at a time as long as their leases tell
// the truth: an account's balance, wherever it is kept. The token of each call is the fencing token
// of the caller's lease.
type store interface {
	// claim tells the resource that the token's lease has begun, and returns the balance that was
	// there. From then on no earlier holder can change what the caller has read.
	claim(ctx context.Context, id string, token uint64) (balance int64, err error)

	// set writes the balance.
	set(ctx context.Context, id string, balance int64, token uint64) error

	// balance reads it; nobody needs a lease for that.
	balance(ctx context.Context, id string) (int64, error)
}

// errStale is matched by the error of a write whose token is smaller than the largest that the
// resource has seen. There is one thing to do about it: stop. A later holder exists, so this lease
// is over, whatever this process believes. To try again with the same token is useless, and to try
// with another's token defeats the check.
var errStale = errors.New("fencing: a later holder has been here")

// errNoAccount is matched when there is no such account.
var errNoAccount = errors.New("fencing: no such account")

// staleError says which write was refused. It matches errStale.
type staleError struct {
	id    string
	token uint64
}

func (e *staleError) Error() string {
	return fmt.Sprintf("fencing: account %q has seen a greater token than %d: another holder exists, stop", e.id, e.token)
}

func (e *staleError) Is(target error) bool { return target == errStale }
