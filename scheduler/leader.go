package scheduler

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

// leadership is this replica's part in the election. A nil one is that of a Scheduler without,
// where every replica leads.
type leadership struct {
	elector *elector.Elector
	current atomic.Pointer[elector.Term]
	unfit   func(context.Context) error // why this replica must not lead; nil if it may
	elected func()                      // called when a term begins; must not block
	left    func()                      // called when it ends; must not block
	given   chan error                  // why the term is to end

	mu     sync.Mutex
	cancel context.CancelFunc // guarded by mu; ends the campaign; nil without one
	ended  chan struct{}      // guarded by mu; closed when Run has returned
}

func newLeadership(q *redlock.Quorum, cfg *config, unfit func(context.Context) error, elected, left func()) (*leadership, error) {
	opts := []elector.Option{elector.WithDrainTimeout(cfg.stopTimeout), elector.WithLogger(cfg.logger)}
	opts = append(opts, cfg.tell.ofElector()...)
	if t := cfg.tracer.Campaign; t != nil {
		opts = append(opts, elector.WithTracer(t))
	}
	e, err := elector.New(q, cfg.election, append(opts, cfg.elector...)...)
	if err != nil {
		return nil, &OptionError{Option: "WithElection", Reason: err.Error(), Err: err}
	}
	return &leadership{elector: e, unfit: unfit, elected: elected, left: left, given: make(chan error, 1)}, nil
}

// check returns nil if this replica leads, and its term is known here. It does no I/O.
func (l *leadership) check(ctx context.Context) error {
	if l == nil {
		return nil
	}
	if err := l.elector.IsLeader(ctx); err != nil {
		return err
	}
	if t := l.current.Load(); t == nil || t.Context().Err() != nil {
		return elector.ErrNotLeader // elected, and lead is about to be called
	}
	return nil
}

// term returns the term that lasts, or ended last; nil for none.
func (l *leadership) term() *elector.Term {
	if l == nil {
		return nil
	}
	return l.current.Load()
}

// during returns a context that ends with ctx, and with the term. cancel is to be called.
func (l *leadership) during(ctx context.Context) (_ context.Context, cancel context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	t := l.term()
	if t == nil {
		return ctx, end
	}
	lost := func() { end(context.Cause(t.Context())) }
	stop := context.AfterFunc(t.Context(), lost)
	if t.Context().Err() != nil {
		lost() // at once, and not a moment later
	}
	return ctx, func(why error) { stop(); end(why) }
}

// campaign takes part in the election until stopCampaign.
func (l *leadership) campaign(ctx context.Context) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		return
	}
	ctx, l.cancel = context.WithCancel(ctx)
	earlier, ended := l.ended, make(chan struct{})
	l.ended = ended
	go func() {
		defer close(ended)
		if earlier != nil {
			<-earlier // it has been told to end
		}
		// Its errors are logged by the elector, or mean that the Quorum is closed.
		_ = l.elector.Run(ctx, l.lead)
	}()
}

// lead keeps the term, unless this replica must not lead: then the error ends it, and the elector
// campaigns again after a pause that grows, in which others are elected. It does not wait for the
// runs that began in the term: each has a lease of its own.
func (l *leadership) lead(ctx context.Context, term *elector.Term) error {
	if err := l.unfit(ctx); err != nil {
		return err
	}
	select {
	case <-l.given: // that was for an earlier term
	default:
	}
	l.current.Store(term)
	l.elected()
	defer l.left()
	select {
	case err := <-l.given:
		return err
	case <-ctx.Done():
		return nil
	}
}

// giveUp ends the term for a reason, if there is one.
func (l *leadership) giveUp(why error) {
	if l == nil || l.check(context.Background()) != nil {
		return
	}
	select {
	case l.given <- why:
	default: // it has been told
	}
}

// stopCampaign ends the campaign and the term, and returns a channel that is closed when that is
// done; nil if there is none.
func (l *leadership) stopCampaign() <-chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel == nil {
		return nil
	}
	l.cancel()
	l.cancel = nil
	return l.ended
}

// elections are those that Schedulers of this process take part in: two would take the leadership
// from each other, and one of them would run nothing.
var elections sync.Map

type electionOf struct {
	q    *redlock.Quorum
	name string
}

// takeElection takes a name until free is called.
func takeElection(q *redlock.Quorum, name string) (free func(), err error) {
	of := electionOf{q, name}
	if _, taken := elections.LoadOrStore(of, nil); taken {
		return nil, &OptionError{Option: "WithElection", Reason: fmt.Sprintf("another Scheduler of this Quorum takes part in the election %q, and the leader of the two "+
			"would run its jobs alone: use one Scheduler, or name another election", name)}
	}
	return sync.OnceFunc(func() { elections.Delete(of) }), nil
}
