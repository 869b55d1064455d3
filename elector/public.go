package elector

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/orders"
)

// This file has what a replica writes on the nodes for people, and the orders that it takes from
// them. None of it decides which replica leads.

// goPublic puts this replica on the card of its process and begins to take orders. The caller calls
// stop when Run ends.
func (e *Elector) goPublic() (stop func()) {
	var ends []func()
	if !e.cfg.withoutCard {
		ends = append(ends, board.Of(e.q).Report(func() board.Report {
			return board.Report{Process: bulletin.Process{Elections: []bulletin.Candidacy{e.candidacy()}}}
		}))
	}
	if !e.cfg.withoutOrders {
		taker := &orders.Taker{Accept: e.accept, Logger: e.cfg.logger}
		taker.Start(e.q)
		ends = append(ends, taker.Close)
	}
	return func() {
		for _, end := range append(ends, e.posts.Wait) {
			end()
		}
	}
}

// candidacy returns this replica's part in the election, now.
func (e *Elector) candidacy() bulletin.Candidacy {
	c := bulletin.Candidacy{Election: e.election, Identity: e.Identity()}
	if t := e.term.Load(); t != nil && t.leads() {
		c.Term, c.Since = t.Number(), t.began.UnixMilli()
	}
	return c
}

// accept takes the order to resign the term that this replica is in, and no other.
func (e *Elector) accept(o bulletin.Order) (carryOut func(context.Context) bulletin.Order, ok bool) {
	t := e.term.Load()
	if t == nil || o.Kind != bulletin.Resign || o.Target != e.election || o.Number != t.Number() {
		return nil, false
	}
	if isClosed(t.over) {
		return nil, false // another replica may lead now, and answers the order
	}
	return func(ctx context.Context) bulletin.Order {
		e.cfg.logger.InfoContext(t.ctx, "elector: ordered to resign", "election", e.election, "term", t.Number(), "by", o.By, "why", o.Why, "id", o.ID)
		a := bulletin.Order{By: e.Identity(), Result: bulletin.Done}
		t.giveUp(fmt.Errorf("%w: ordered by %q: %q", ErrResigned, o.By, o.Why))
		// The wait needs no ctx: Run ends ctx only after its last term.
		if err := t.wait(context.WithoutCancel(ctx)); errors.Is(err, ErrDrainTimeout) {
			a.Result, a.Detail = bulletin.Refused, "drain_timeout"
		} else if err != nil {
			a.Result, a.Detail = bulletin.Refused, "lost"
		}
		return a
	}, true
}
