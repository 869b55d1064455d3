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

	down     atomic.Bool             // stepped down: IsLeader says no from here on
	resign   context.Context         // ends when the term is to be given up; its cause matches ErrResigned
	giveUp   context.CancelCauseFunc // of resign; the first cause counts
	returned atomic.Bool             // lead has
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
// Run and ends when the term is given up, with ErrResigned or what ended Run as its cause, or when
// the lease is lost, by its deadline at the latest, with a *redlock.LostError.
func (t *Term) Context() context.Context { return t.ctx }

// Deadline returns until when this replica leads, as known now; extensions move it. It is to be
// compared with time.Now in this process.
func (t *Term) Deadline() time.Time { return t.lease.Deadline() }

// Number returns the term's number, which is greater than that of every earlier term of any
// replica: the lease's fencing token. Pass it with every write, and let the resource refuse a
// number below the largest it has seen.
func (t *Term) Number() uint64 { return t.lease.FencingToken() }

// Resign gives the term up: IsLeader turns false, the term's context ends, and once lead has
// returned the lease is released. Then another replica, or this one again, can be elected.
//
// It waits until that is done, and returns nil then, also when the term had been given up before.
// It returns ErrDrainTimeout when lead overruns the drain timeout, an error matching
// redlock.ErrLost when the lease was lost first, or ctx's error; the resignation goes on in the
// latter case. Called from within lead with the term's context, which ends by it, it does not wait,
// because lead is what it would wait for.
func (t *Term) Resign(ctx context.Context) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	t.giveUp(ErrResigned)
	return t.wait(ctx)
}

// wait returns when the term has ended, as Resign does.
func (t *Term) wait(ctx context.Context) error {
	select {
	case <-t.over:
	default:
		select {
		case <-t.over:
		case <-t.overran:
			return ErrDrainTimeout
		case <-ctx.Done():
			return fmt.Errorf("elector: still resigning: %w", ctx.Err())
		}
	}
	if t.ended.Kind == Lost {
		return t.ended.Err
	}
	return nil
}

// leads reports whether the term lasts, by the clock.
func (t *Term) leads() bool { return !t.down.Load() && t.lease.Err() == nil }

// stepDown ends the term for this replica: first for IsLeader, then for lead.
func (t *Term) stepDown(cause error) {
	t.down.Store(true)
	t.cancel(cause)
}

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
	panic *panicked
}

// panicked is a panic of lead on its way to the goroutine of Run.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) String() string {
	return fmt.Sprintf("%v\n\nelector: lead panicked:\n%s", p.value, p.stack)
}

// run calls lead on a goroutine of its own and returns the channel on which its verdict will be,
// once, whatever happens in there. A panic of an abandoned lead goes on in lead's goroutine.
func (t *Term) run(lead func(context.Context, *Term) error) <-chan verdict {
	done := make(chan verdict, 1)
	go func() {
		v := verdict{err: errors.New("elector: lead called runtime.Goexit")}
		defer func() {
			if r := recover(); r != nil {
				v = verdict{err: fmt.Errorf("elector: lead panicked: %v", r), panic: &panicked{value: r, stack: debug.Stack()}}
			}
			t.returned.Store(true)
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.abandoned && v.panic != nil {
				panic(v.panic.String())
			}
			done <- v
		}()
		v = verdict{err: lead(t.ctx, t)}
	}()
	return done
}

// abandon notes that Run does not wait for lead any more, unless lead has returned after all.
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
