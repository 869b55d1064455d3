// Package orders has a process hear the orders of operators, and answer them: what package admin
// gives, and schedulers and electors take.
//
// An order is an entry of the journal of orders, which its giver repeats until it has an answer: an
// entry with the same id. An order that must be carried out once at most is claimed first, in a
// register of its own, by a taker, or by the giver when it gives up.
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
	// remembered is of how many orders a taker knows the answer.
	remembered = 64
	// keepClaims is for how long the nodes remember who has claimed an order: longer than it is
	// taken.
	keepClaims = time.Hour
	// answerTimeout bounds how long an answer is tried to be told.
	answerTimeout = 5 * time.Second
)

// ErrTaken means that an order is claimed already.
var ErrTaken = errors.New("orders: claimed already")

// Claim claims an order, for who calls it. Nobody else can claim it after that: a register of the
// order has who did, which a quorum of nodes has before anything is done for it.
//
// Errors: ErrTaken once it is claimed, on however few nodes, and else what redlock's TryAcquire and
// register's Begin and Write return. Then it is not the caller's; after an error of Write perhaps
// nobody's.
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

// NewID makes the id of an order, which no other has.
func NewID() string { return rand.Text() }

func claimKey(id string) string { return "order/" + id }

// Taken tells who has claimed an order, before it is carried out.
func Taken(ctx context.Context, q *redlock.Quorum, o bulletin.Order, by string) {
	o.By, o.Why, o.Within, o.Result = by, "", 0, bulletin.Taken
	Tell(ctx, q, o, answerTimeout) // the answer says it again
}

// Tell enters what came of an order into the journal, if that takes no longer than it may.
func Tell(ctx context.Context, q *redlock.Quorum, o bulletin.Order, most time.Duration) {
	if e, ok := o.Entry(); ok {
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		_ = board.Of(q).Post(ctx, nil, e)
	}
}

// Taker takes orders.
type Taker struct {
	// Accept reports whether an order is for this one, and returns what carries it out and says
	// what came of it. It must not block.
	Accept func(bulletin.Order) (carryOut func(context.Context) bulletin.Order, ok bool)
	Logger *slog.Logger

	board  board.Board
	ctx    context.Context
	cancel context.CancelFunc
	unhear func()
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool            // guarded by mu
	busy    map[string]bool // guarded by mu; orders that are carried out
	answers []answer        // guarded by mu; the last ones
}

// answer is what came of an order. Its entry is the same whenever it is told, also in its At, so
// that a journal has it once.
type answer struct {
	id    string
	entry bulletin.Entry
}

// Start begins to take orders. Close ends that.
func (t *Taker) Start(q *redlock.Quorum) {
	t.board, t.busy = board.Of(q), make(map[string]bool)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.unhear = t.board.Hear(bulletin.Orders, t.hear)
}

// Close takes no more orders, tells those that are carried out to end, and waits for them.
func (t *Taker) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.unhear()
	t.cancel()
	t.work.Wait()
}

func (t *Taker) hear(e bulletin.Entry) {
	o, ok := bulletin.ParseOrder(e.Text)
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
			t.busy[o.ID] = t.begin(func() { t.tell(a); t.done(o.ID) }) // it was not heard
			return
		}
	}
	carryOut, ok := t.Accept(o)
	if !ok {
		return
	}
	t.busy[o.ID] = t.begin(func() { t.take(o, carryOut) })
}

// begin is called with mu held.
func (t *Taker) begin(f func()) bool {
	if !t.closed {
		t.work.Go(f)
	}
	return !t.closed
}

func (t *Taker) take(o bulletin.Order, carryOut func(context.Context) bulletin.Order) {
	came := carryOut(t.ctx)
	came.ID, came.Kind, came.Target, came.Number = o.ID, o.Kind, o.Target, o.Number
	e, ok := came.Entry()
	e.At = time.Now()
	ok = ok && came.Result != "" // or it was not this taker's after all
	a := answer{came.ID, e}
	t.mu.Lock()
	delete(t.busy, o.ID)
	if ok {
		if len(t.answers) == remembered {
			t.answers = t.answers[1:]
		}
		t.answers = append(t.answers, a)
	}
	t.mu.Unlock()
	if !ok {
		return
	}
	t.Logger.InfoContext(t.ctx, "an order was carried out", "order", o.Kind, "for", o.Target, "by", o.By, "why", o.Why, "id", o.ID, "result", came.Result, "detail", came.Detail)
	t.tell(a)
}

// done lets an order be heard again.
func (t *Taker) done(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, id)
}

// tell tells what came of an order.
func (t *Taker) tell(a answer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), answerTimeout)
	defer cancel()
	if err := t.board.Post(ctx, nil, a.entry); err != nil {
		t.Logger.WarnContext(ctx, "the answer to an order was not heard", "id", a.id, "error", err)
	}
}
