package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/tenure-dev/tenure/redlock"
)

// leaseKey is the key of the lease that guards the account, in both stores.
const leaseKey = "account/main"

// accountID is the account.
const accountID = "main"

// holder is one of the processes that want to write: it has a Quorum of its own and, at times, the
// lease.
type holder struct {
	name   string
	quorum *redlock.Quorum
	lease  *redlock.Lease
}

func newHolder(name string, nodes []string) (*holder, error) {
	quorum, err := redlock.Open(nodes, redlock.WithPrefix("fencing"),
		redlock.WithIdentity(name), redlock.WithTTL(redlock.MinTTL), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("fencing: holder %s cannot use the nodes: %w", name, err)
	}
	return &holder{name: name, quorum: quorum}, nil
}

// acquire waits for the lease.
func (h *holder) acquire(ctx context.Context) error {
	lease, err := h.quorum.Acquire(ctx, leaseKey)
	if err != nil {
		return fmt.Errorf("fencing: holder %s cannot acquire the lease: %w", h.name, err)
	}
	h.lease = lease
	return nil
}

// deposit is a holder's work as it should be: claim, compute, write, with the lease's token.
func (h *holder) deposit(ctx context.Context, s store, amount int64) error {
	token := h.lease.FencingToken()
	balance, err := s.claim(ctx, accountID, token)
	if err != nil {
		return err
	}
	return s.set(ctx, accountID, balance+amount, token)
}

// pause is a time in which a process stands still: stopped by its scheduler, its garbage collector
// or a hypervisor.
type pause struct {
	begun chan struct{} // closed when the process stands still
	over  chan struct{} // closed to let it go on
}

func newPause() *pause { return &pause{begun: make(chan struct{}), over: make(chan struct{})} }

// depositLate is deposit to several stores with a pause at the worst moment: the holder asks its
// lease right before it writes, as careful code does, and hears that it is valid; then its process
// stands still. A process that stands still extends nothing, hence StopExtending.
//
// The writes do not use the lease's context, which would hold them back here. It cannot hold back
// what has left the process: a request in a socket's buffer comes as late as these, and asks no
// context.
//
// The refusals are one for each store, nil where the write was done. With an error nothing was
// written.
func (h *holder) depositLate(
	ctx context.Context, stores []namedStore, amount int64, p *pause,
) (refusals []error, err error) {
	token := h.lease.FencingToken()
	balances := make([]int64, len(stores))
	for i, s := range stores {
		if balances[i], err = s.claim(ctx, accountID, token); err != nil {
			return nil, err
		}
	}

	if err := h.lease.Err(); err != nil {
		return nil, err
	}
	h.lease.StopExtending()
	close(p.begun)
	select {
	case <-p.over:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	for i, s := range stores {
		refusals = append(refusals, s.set(ctx, accountID, balances[i]+amount, token))
	}
	return refusals, nil
}
