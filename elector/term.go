package elector

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// Term is one time in office of this replica. It is safe for concurrent use.
type Term struct {
	lease  *redlock.Lease
	ctx    context.Context
	cancel context.CancelCauseFunc
	began  time.Time

	resign   context.Context         // ends when the term is to be given up; its cause matches ErrResigned
	giveUp   context.CancelCauseFunc // ends resign; the first cause counts
	returned atomic.Bool             // lead has returned
	overran  chan struct{}           // closed if lead exceeds the drain timeout
	over     chan struct{}           // closed when the term has been announced as ended
	ended    Change                  // read after over is closed
	served   time.Duration           // owned by Run

	mu        sync.Mutex
	abandoned bool // guarded by mu; Run does not wait for lead any more
}

func newTerm(lease *redlock.Lease) *Term {
	t := &Term{
		lease:   lease,
		began:   time.Now(),
		overran: make(chan struct{}),
		over:    make(chan struct{}),
	}
	t.ctx, t.cancel = context.WithCancelCause(lease.Context())
	t.resign, t.giveUp = context.WithCancelCause(context.Background())
	return t
}

// Context returns the context that lead runs with. It carries the values of the context given to
// Run. It ends when the term is given up, with ErrResigned or with the cause of the end of Run's
// context. It also ends when the lease is lost, at the deadline at the latest, with a
// *redlock.LostError.
func (t *Term) Context() context.Context { return t.ctx }

// Deadline returns until when this replica leads, as known now; extensions move it. Compare it with
// time.Now in this process.
func (t *Term) Deadline() time.Time { return t.lease.Deadline() }

// Number returns the term's number, the lease's fencing token. It is greater than the number of
// every earlier term of any replica. Pass it with every write, and let the resource refuse a number
// below the largest it has seen.
func (t *Term) Number() uint64 { return t.lease.FencingToken() }

// Resign gives the term up: IsLeader turns false, the term's context ends, lead returns, and the
// lease is released. Then another replica, or this one again, can be elected.
//
// Resign waits until that is done and then returns nil, even if the term had been given up before.
// It returns ErrDrainTimeout when lead overruns the drain timeout, and an error matching
// redlock.ErrLost when the lease was lost first. It returns ctx's error when ctx ends first; the
// resignation goes on. lead calls it with the term's context: Resign ends that, and so returns its
// error at once. With another context, Resign and lead would wait for each other until the drain
// timeout.
func (t *Term) Resign(ctx context.Context) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	t.giveUp(ErrResigned)
	return t.wait(ctx)
}

// wait waits for the end of the term and returns as Resign does.
func (t *Term) wait(ctx context.Context) error {
	select {
	case <-t.over:
	case <-t.overran:
	case <-ctx.Done():
	}
	switch {
	case !isClosed(t.over) && isClosed(t.overran):
		return ErrDrainTimeout
	case !isClosed(t.over):
		return fmt.Errorf("elector: still resigning: %w", ctx.Err())
	case t.ended.Kind == Lost:
		return t.ended.Err
	}
	return nil
}

// leads reports whether the term lasts, by the clock. It says no before anybody sees that ctx has
// ended.
func (t *Term) leads() bool { return t.ctx.Err() == nil && t.lease.Err() == nil }

// overruns reports whether lead has exceeded the drain timeout and still runs.
func (t *Term) overruns() bool {
	return isClosed(t.overran) && !t.returned.Load()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// verdict is how lead returned.
type verdict struct {
	err   error
	panic string // the value and the stack of a panic, on their way to the goroutine of Run; empty for none
}

// run calls lead on a goroutine of its own and returns the channel for the verdict. The channel
// gets one verdict, even if lead panics or ends its goroutine. If Run has abandoned lead, a panic
// of lead ends the process from lead's goroutine.
func (t *Term) run(lead func(context.Context, *Term) error) <-chan verdict {
	done := make(chan verdict, 1)
	go func() {
		v := verdict{err: errors.New("elector: lead called runtime.Goexit")}
		defer func() {
			if r := recover(); r != nil {
				v = verdict{err: fmt.Errorf("elector: lead panicked: %v", r), panic: fmt.Sprintf("%v\n\nelector: lead panicked:\n%s", r, debug.Stack())}
			}
			t.returned.Store(true)
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.abandoned && v.panic != "" {
				panic(v.panic)
			}
			done <- v
		}()
		v = verdict{err: lead(t.ctx, t)}
	}()
	return done
}

// abandon notes that Run no longer waits for lead. If lead has returned after all, abandon returns
// its verdict and false.
func (t *Term) abandon(led <-chan verdict) (verdict, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case v := <-led:
		return v, false
	default:
		t.abandoned = true
		return verdict{}, true
	}
}
