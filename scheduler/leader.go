package scheduler

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock"
)

// leadership is this replica's part in the election. It is nil for a Scheduler without an election,
// where every replica acts as a leader does.
type leadership struct {
	s       *Scheduler
	elector *elector.Elector
	current atomic.Pointer[elector.Term]
}

// elections are the elections in which Schedulers of this process take part. Two Schedulers in one
// election would take the leadership from each other, and one of them would run nothing.
var elections sync.Map

type electionOf struct {
	q    *redlock.Quorum
	name string
}

// newLeadership reserves the name of the election in this process, until free is called.
func newLeadership(s *Scheduler) (*leadership, error) {
	cfg, l := s.cfg, &leadership{s: s}
	if _, taken := elections.LoadOrStore(electionOf{s.q, cfg.election}, l); taken {
		return nil, &OptionError{Option: "WithElection", Reason: fmt.Sprintf("another Scheduler of this Quorum takes part in the election %q, and the leader of the two "+
			"would run its jobs alone: use one Scheduler, or name another election", cfg.election)}
	}
	opts := append([]elector.Option{elector.WithDrainTimeout(cfg.stopTimeout), elector.WithLogger(cfg.logger)}, cfg.tell.ofElector()...)
	if t := cfg.tracer.Campaign; t != nil {
		opts = append(opts, elector.WithTracer(t))
	}
	var err error
	if l.elector, err = elector.New(s.q, cfg.election, append(opts, cfg.elector...)...); err != nil {
		l.free()
		return nil, &OptionError{Option: "WithElection", Reason: err.Error(), Err: err}
	}
	return l, nil
}

func (l *leadership) free() {
	if l != nil {
		elections.CompareAndDelete(electionOf{l.s.q, l.s.cfg.election}, l)
	}
}

// check returns nil if this replica leads and lead has taken over the term, else why not. It does
// no I/O.
func (l *leadership) check(ctx context.Context) error {
	if l == nil {
		return nil
	}
	if err := l.elector.IsLeader(ctx); err != nil {
		return err
	}
	if t := l.current.Load(); t == nil || t.Context().Err() != nil {
		return elector.ErrNotLeader // elected, but lead has not been called yet
	}
	return nil
}

// term returns the term that lasts, or else the last one; nil for none.
func (l *leadership) term() *elector.Term {
	if l == nil {
		return nil
	}
	return l.current.Load()
}

// lead keeps the term until ctx ends, or until this replica's clock is too far ahead. In the second
// case it returns an error, which ends the term. The elector then campaigns again after a pause
// that grows, in which other replicas are elected. lead does not wait for the runs that began in
// the term, because each has a lease of its own.
func (l *leadership) lead(ctx context.Context, term *elector.Term) error {
	if err := l.s.clockAhead(ctx); err != nil {
		return err
	}
	l.current.Store(term)
	l.s.wakeAll()
	defer l.s.wakeAll()
	for clock.Sleep(ctx, clockEvery) == nil {
		if err := l.s.clockAhead(ctx); err != nil {
			return err
		}
	}
	return nil
}
