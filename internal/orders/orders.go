// Package orders delivers orders of operators to processes, and their answers back. Package admin
// gives orders; schedulers and electors take them.
//
// An order is an entry of the journal of orders. Its giver repeats it until it has an answer, which
// is an entry with the same id. An order that must be carried out at most once is claimed first, in
// a register of its own: by a taker, or by the giver when it gives up.
package orders

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

const (
	// mostAtOnce bounds the orders that a taker carries out at the same time. Others are not taken.
	mostAtOnce = 16
	// remembered is the number of orders whose answers a taker remembers.
	remembered = 64
	// keepClaims is how long the nodes remember the claim of an order: longer than an order is
	// taken.
	keepClaims = time.Hour
	// answerTimeout bounds the time of posting an answer.
	answerTimeout = 5 * time.Second
)

// ErrTaken means that an order was claimed already.
var ErrTaken = errors.New("orders: claimed already")

// Claim claims an order for the caller. After nil no other process can claim it: a quorum of nodes
// has the claim, in a register of the order, before the order is carried out.
//
// Errors: ErrTaken if the order was claimed, on however few nodes; else those of redlock's
// TryAcquire and of register's Begin and Write. After any error the order is not the caller's.
// After an error of Write it may be claimed by no process.
func Claim(ctx context.Context, q *redlock.Quorum, id string, opts ...redlock.LeaseOption) error {
	l, err := q.TryAcquire(ctx, claimKey(id), opts...)
	if err != nil {
		return err
	}
	return register.Of(q, claimKey(id), keepClaims).Change(ctx, l, func(s register.State) ([]byte, error) {
		if len(s.Value) > 0 {
			return nil, ErrTaken
		}
		return []byte(l.Identity()), nil
	})
}

// NewID returns a unique id for an order.
func NewID() string { return rand.Text() }

func claimKey(id string) string { return "order/" + id }

// Taken announces that a process has claimed an order and has not carried it out yet.
func Taken(ctx context.Context, q *redlock.Quorum, o bulletin.Order, by string) {
	o.By, o.Why, o.Within, o.Result = by, "", 0, bulletin.Taken
	Tell(ctx, q, o, answerTimeout) // a lost announcement is repeated by the answer
}

// Tell enters the result of an order into the journal. It takes at most the time given, and drops
// errors.
func Tell(ctx context.Context, q *redlock.Quorum, o bulletin.Order, most time.Duration) {
	if e, ok := o.Entry(); ok {
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		_ = board.Of(q).Post(ctx, nil, e)
	}
}

// Taker takes orders and answers them.
type Taker struct {
	// Accept reports whether an order is for this taker. If so it returns the function that carries
	// the order out and returns the result; an empty Result means that the order was not for this
	// taker after all. Accept must not block.
	Accept func(bulletin.Order) (carryOut func(context.Context) bulletin.Order, ok bool)
	Logger *slog.Logger

	board  board.Board
	ctx    context.Context
	cancel context.CancelFunc
	unhear func()
	work   sync.WaitGroup

	mu      sync.Mutex
	busy    map[string]bool // guarded by mu; ids of the orders that are being carried out or answered
	answers []answer        // guarded by mu; the last ones, at most remembered
}

// answer is the result of an order. Each repetition posts the same entry, with the same At, so that
// a journal has it once.
type answer struct {
	id    string
	entry bulletin.Entry
}

// Start begins to take orders, until Close.
func (t *Taker) Start(q *redlock.Quorum) {
	t.board, t.busy = board.Of(q), make(map[string]bool)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.unhear = t.board.Hear(bulletin.Orders, t.hear)
}

// Close takes no more orders, cancels those that are being carried out, and waits for them.
func (t *Taker) Close() {
	t.mu.Lock()
	t.cancel() // nothing is begun after that
	t.mu.Unlock()
	t.unhear()
	t.work.Wait()
}

func (t *Taker) hear(e bulletin.Entry) {
	o, ok := bulletin.Parse[bulletin.Order](e.Text)
	if !ok || o.Result != "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[o.ID] || len(t.busy) >= mostAtOnce {
		return
	}
	for _, a := range t.answers {
		if a.id == o.ID {
			t.begin(o.ID, func() { t.tell(a) }) // its giver has not heard the answer
			return
		}
	}
	if carryOut, ok := t.Accept(o); ok {
		t.begin(o.ID, func() { t.take(o, carryOut) })
	}
}

// begin runs f in the background, unless the taker is closed. The order is busy until f has
// returned. The caller holds mu.
func (t *Taker) begin(id string, f func()) {
	if t.ctx.Err() != nil {
		return
	}
	t.busy[id] = true
	t.work.Go(func() {
		f()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.busy, id)
	})
}

func (t *Taker) take(o bulletin.Order, carryOut func(context.Context) bulletin.Order) {
	came := carryOut(t.ctx)
	came.ID, came.Kind, came.Target, came.Number = o.ID, o.Kind, o.Target, o.Number
	e, ok := came.Entry()
	if e.At = time.Now(); !ok || came.Result == "" { // it was not for this taker after all
		return
	}
	a := answer{came.ID, e}
	t.mu.Lock()
	t.answers = append(t.answers[max(len(t.answers)+1-remembered, 0):], a)
	t.mu.Unlock()
	t.Logger.InfoContext(t.ctx, "orders: an order was answered", "order", o.Kind, "for", o.Target, "by", o.By, "why", o.Why, "id", o.ID, "result", came.Result, "detail", came.Detail)
	t.tell(a)
}

// tell posts an answer.
func (t *Taker) tell(a answer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), answerTimeout)
	defer cancel()
	if err := t.board.Post(ctx, nil, a.entry); err != nil {
		t.Logger.WarnContext(ctx, "orders: the answer to an order was not heard", "id", a.id, "error", err)
	}
}
