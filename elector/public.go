package elector

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/orders"
)

// What a replica tells people, and what people tell it. None of it decides who leads.

// goPublic begins to tell what this replica is, and to take orders. The caller calls stop when Run
// ends.
func (e *Elector) goPublic() (stop func()) {
	withdraw := func() {}
	if !e.cfg.withoutCard {
		withdraw = board.Of(e.q).Report(func() board.Report {
			return board.Report{Process: bulletin.Process{Elections: []bulletin.Candidacy{e.candidacy()}}}
		})
	}
	taker := &orders.Taker{Accept: e.accept, Logger: e.cfg.logger}
	if !e.cfg.withoutOrders {
		taker.Start(e.q)
	}
	return func() {
		withdraw()
		if !e.cfg.withoutOrders {
			taker.Close()
		}
		e.posts.Wait()
	}
}

// candidacy is this replica's part in the election, now.
func (e *Elector) candidacy() bulletin.Candidacy {
	c := bulletin.Candidacy{Election: e.election, Identity: e.Identity()}
	if t := e.term.Load(); t != nil && t.leads() {
		c.Term, c.Since = t.Number(), t.began.UnixMilli()
	}
	return c
}

// accept takes the order to resign the term that this replica is in.
func (e *Elector) accept(o bulletin.Order) (carryOut func(context.Context) bulletin.Order, ok bool) {
	t := e.term.Load()
	if t == nil || o.Kind != bulletin.Resign || o.Target != e.election || o.Number != t.Number() {
		return nil, false
	}
	if isClosed(t.over) {
		return nil, false // another replica may be the leader, and answer
	}
	return func(ctx context.Context) bulletin.Order {
		e.cfg.logger.InfoContext(t.ctx, "elector: ordered to resign", "election", e.election, "term", t.Number(), "by", o.By, "why", o.Why, "id", o.ID)
		a := bulletin.Order{By: e.Identity(), Result: bulletin.Done}
		t.giveUp(fmt.Errorf("%w: ordered by %q: %q", ErrResigned, o.By, o.Why))
		// It ends before Run does, and Run tells its orders to end only then.
		if err := t.wait(context.WithoutCancel(ctx)); errors.Is(err, ErrDrainTimeout) {
			a.Result, a.Detail = bulletin.Refused, "drain_timeout"
		} else if err != nil {
			a.Result, a.Detail = bulletin.Refused, "lost"
		}
		return a
	}, true
}
