package elector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock"
)

// Elector takes part in an election for this replica. Make one with New, call Run, and call
// IsLeader anywhere. It is safe for concurrent use.
type Elector struct {
	q        *redlock.Quorum
	election string
	cfg      *config
	feed     *feed

	made    time.Time
	ran     atomic.Bool // Run was called, or it was logged that it never was
	running atomic.Bool
	term    atomic.Pointer[Term] // the term that lasts, or else the last one
	posts   sync.WaitGroup       // entries on their way; Run waits for them

	unreturned <-chan verdict // owned by Run: of a lead that outlived an earlier Run
}

// New makes an Elector for the named election. Replicas with the same election on the same nodes,
// and the same prefix (redlock.WithPrefix), elect one of them. The key of the election's lease is
// "election/" followed by the name.
//
// New returns an *OptionError when an argument or an option cannot be used. The caller closes q,
// after Run has returned.
func New(q *redlock.Quorum, election string, opts ...Option) (*Elector, error) {
	if err := checkElection(q, election); err != nil {
		return nil, err
	}
	cfg, err := newConfig(q, opts)
	if err != nil {
		return nil, err
	}
	cfg.identity = q.NewIdentity(cfg.lease...)
	cfg.lease = append([]redlock.LeaseOption{redlock.WithIdentity(cfg.identity), redlock.WithMinHold(0)}, cfg.lease...)
	if err := cfg.checkLease(q, election); err != nil {
		return nil, err
	}
	return &Elector{q: q, election: election, cfg: cfg, feed: newFeed(), made: time.Now()}, nil
}

// Election returns the election's name.
func (e *Elector) Election() string { return e.election }

// Identity returns the name under which this replica leads; see WithIdentity.
func (e *Elector) Identity() string { return e.cfg.identity }

// Run campaigns until ctx ends. Each time this replica is elected, Run calls lead with the term's
// context. lead must return when that context ends. Terms of one Elector never overlap: Run does
// not campaign again before lead has returned.
//
// When lead returns nil, the term is given up. After a short pause, in which others may take over,
// Run campaigns again. When lead returns an error while its term lasts, the pause is longer
// (WithBackoff). When lead panics, the term ends and Run panics. With a nil lead, this replica
// leads until ctx ends, the term is resigned, or the lease is lost.
//
// When ctx ends during a term, the term is given up in order: IsLeader says no, the term's context
// ends, lead returns, the lease is released. If lead does not return within the drain timeout, the
// lease is left to run out by itself, and Run returns while lead still runs.
//
// Run returns nil when ctx has ended and lead has returned. It returns an error matching
// ErrDrainTimeout when lead, of this Run or of an earlier one, has not returned. It returns
// ErrRunning when Run is running already, an *OptionError when ctx is nil, and an error matching
// redlock.ErrClosed when the Quorum was closed. A failure to release the lease is logged and not
// returned, since the lease expires in any case.
//
// While it runs, Run also writes on the nodes what this replica does, for people, and takes orders
// from them; see WithoutHistory, WithoutCard and WithoutOrders. No term begins or ends later for
// that. At its end Run waits for the writes that are still on their way: at most the node timeout
// and 5 s.
func (e *Elector) Run(ctx context.Context, lead func(context.Context, *Term) error) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	if !e.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer e.running.Store(false)
	e.ran.Store(true)
	if e.unreturned != nil {
		select {
		case <-e.unreturned:
			e.unreturned = nil
		default:
			return fmt.Errorf("elector: %q: an earlier lead still runs: %w", e.election, ErrDrainTimeout)
		}
	}
	defer e.goPublic()()
	var pause time.Duration // after the last term; zero if lead did not fail
	for ctx.Err() == nil {
		t, err := e.campaign(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("elector: %q: %w", e.election, err)
		case ctx.Err() != nil:
			_ = t.lease.Release(ctx) // too late to take office
			return nil
		}
		v, err := e.serve(ctx, t, lead)
		if err != nil {
			return err
		}
		if v.panic != "" {
			panic(v.panic)
		}
		if t.ended.Reason != ReasonFailed || t.served > e.backoffMax(t) {
			pause = 0
		}
		switch t.ended.Reason {
		case ReasonFailed:
			pause = e.backoff(t, pause)
			e.pause(ctx, pause)
		case ReasonReturned, ReasonResigned:
			e.pause(ctx, e.cfg.backoffMin)
		}
	}
	return nil
}

// campaign waits for the lease and returns the term that begins with it.
func (e *Elector) campaign(ctx context.Context) (*Term, error) {
	tracer := e.cfg.campaigns
	if tracer != nil {
		ctx = tracer.TraceCampaignStart(ctx, TraceCampaignStartData{Election: e.election, Identity: e.Identity()})
	}
	lease, err := e.q.Acquire(ctx, KeyPrefix+e.election, e.cfg.lease...)
	var t *Term
	if err == nil {
		t = newTerm(lease)
	}
	if tracer != nil {
		told := false
		defer func() {
			if t != nil && !told {
				e.breakOff(t, nil)
			}
		}()
		tracer.TraceCampaignEnd(ctx, TraceCampaignEndData{Election: e.election, Term: t, Err: err})
		told = true
	}
	return t, err
}

// serve runs a term from its announcement to its end. It returns how lead returned, or an error if
// Run can no longer wait for lead.
func (e *Elector) serve(ctx context.Context, t *Term, lead func(context.Context, *Term) error) (verdict, error) {
	var led <-chan verdict
	served := false
	defer func() {
		if !served {
			e.breakOff(t, led)
		}
	}()
	e.term.Store(t)
	e.post(t, Change{Kind: Elected})
	e.announce(t, Change{Kind: Elected})
	if lead != nil {
		led = t.run(lead)
	}
	var v verdict
	returned := lead == nil
	end := Change{Kind: Resigned}
	select {
	case v = <-led:
		returned = true
		end.Reason, end.Err = ReasonReturned, ErrResigned
		// An error that lead returns after the loss of the lease is no failure of lead.
		if v.err != nil && t.lease.Err() == nil {
			end.Reason, end.Err = ReasonFailed, v.err
		}
	case <-t.resign.Done():
		end.Reason, end.Err = ReasonResigned, context.Cause(t.resign)
	case <-ctx.Done():
		end.Reason, end.Err = ReasonShutdown, context.Cause(ctx)
	case <-t.lease.Context().Done():
		end.Err = t.lease.Err() // t.ctx may not have ended yet
	}
	t.cancel(end.Err)
	if !returned {
		var err error
		if v, err = e.drain(ctx, t, led); err != nil {
			served = true
			return v, err
		}
	}
	e.release(t, end)
	served = true
	return v, nil
}

// drain waits for lead to return. Until the drain timeout the lease is still extended, after it no
// longer. drain returns an error when both the drain timeout has passed and ctx has ended.
func (e *Elector) drain(ctx context.Context, t *Term, led <-chan verdict) (verdict, error) {
	limit := cmp.Or(e.cfg.drain, t.lease.TTL())
	late := time.After(limit)
	gone := t.lease.Context().Done()
	var stop <-chan struct{} // the end of ctx, looked at after the drain timeout
	for {
		select {
		case v := <-led:
			return v, nil
		case <-gone:
			gone = nil
			err := t.lease.Err()
			e.end(t, Change{Kind: Lost, Reason: lossReason(err), Err: err})
		case <-late:
			if len(led) > 0 {
				continue // lead returned at the same moment
			}
			t.lease.StopExtending()
			close(t.overran)
			stop = ctx.Done()
			e.cfg.logger.WarnContext(ctx, "elector: lead overruns the drain timeout; the lease is left to run out",
				"election", e.election, "term", t.Number(), "timeout", limit)
		case <-stop:
			v, abandoned := t.abandon(led)
			if !abandoned {
				return v, nil
			}
			err := fmt.Errorf("elector: %q, term %d: %w of %v", e.election, t.Number(), ErrDrainTimeout, limit)
			e.end(t, Change{Kind: Lost, Reason: ReasonDrainTimeout, Err: err})
			e.unreturned = led
			return verdict{}, err
		}
	}
}

// release frees the lease of a term in which nothing runs any more, and announces the term's end.
func (e *Elector) release(t *Term, end Change) {
	if err := t.lease.Err(); err != nil {
		end = Change{Kind: Lost, Reason: lossReason(err), Err: err}
	}
	err := t.lease.Release(t.ctx)
	switch {
	case errors.Is(err, redlock.ErrLost):
		end = Change{Kind: Lost, Reason: lossReason(err), Err: err}
	case err != nil:
		e.cfg.logger.WarnContext(t.ctx, "elector: the lease was not released everywhere and will expire",
			"election", e.election, "term", t.Number(), "error", err)
	}
	e.end(t, end)
}

// end announces the end of a term, once. Only the goroutine of Run calls it.
func (e *Elector) end(t *Term, c Change) {
	if isClosed(t.over) {
		return
	}
	defer close(t.over)
	t.ended = c
	e.post(t, c)
	e.announce(t, c)
}

// announce tells the tracer, the logger and the readers of Changes of a change. The readers learn
// of it even if the tracer or the logger panics.
func (e *Elector) announce(t *Term, c Change) {
	c.Term, c.At = t.Number(), time.Now()
	defer e.feed.publish(c)
	if c.Kind != Elected {
		t.served = c.At.Sub(t.began)
	}
	if tracer := e.cfg.changes; tracer != nil {
		tracer.TraceChange(t.ctx, TraceChangeData{Election: e.election, Change: c, Term: t, Served: t.served})
	}
	level := slog.LevelInfo
	if c.Kind == Lost || c.Reason == ReasonFailed {
		level = slog.LevelWarn
	}
	args := []any{"election", e.election, "identity", e.Identity(), "term", c.Term}
	if c.Kind != Elected {
		args = append(args, "reason", c.Reason, "cause", c.Err)
	}
	e.cfg.logger.Log(t.ctx, level, "elector: "+string(c.Kind), args...)
}

// IsLeader returns nil if this replica leads, and ErrNotLeader if not. It compares the clock at the
// call and does no I/O, so a process that was paused gets a right answer at once. Its signature is
// that of gocron's Elector; ctx is not used. If Run has not been called half a minute after New,
// IsLeader logs, once, that this replica never leads.
//
// The answer can be out of date as soon as it is given. An effect that must not happen twice needs
// Term.Number as a fencing token.
func (e *Elector) IsLeader(context.Context) error {
	if t := e.term.Load(); t != nil && t.leads() {
		return nil
	}
	e.warnOfNoRun()
	return ErrNotLeader
}

// Leader is the leader of an election, as a quorum of nodes knows it.
type Leader struct {
	Identity string        // see WithIdentity
	Payload  string        // see WithPayload; empty for none
	Term     uint64        // Term.Number
	TTL      time.Duration // until the lease expires unless it is extended; redlock.NoExpiry for a key that is no lease
}

// Leader reads from a quorum of nodes which replica leads. The answer may be out of date when it
// arrives: a leader that crashed is reported until its lease expires.
//
// Errors: ErrNoLeader, or the errors of redlock's Holder.
func (e *Elector) Leader(ctx context.Context) (Leader, error) {
	if err := checkContext(ctx); err != nil {
		return Leader{}, err
	}
	return leader(ctx, e.q, e.election)
}

func leader(ctx context.Context, q *redlock.Quorum, election string) (Leader, error) {
	h, err := q.Holder(ctx, KeyPrefix+election)
	switch {
	case errors.Is(err, redlock.ErrNotHeld):
		return Leader{}, ErrNoLeader
	case err != nil:
		return Leader{}, fmt.Errorf("elector: %q: %w", election, err)
	}
	return Leader{Identity: h.Identity, Payload: h.Payload, Term: h.FencingToken, TTL: h.TTL}, nil
}

// Healthy returns nil if this replica takes part in the election as it should: it leads, or it is a
// candidate and a quorum of nodes answered when it was last asked. A replica that follows is
// healthy. Healthy does no I/O.
//
// Do not use it alone for probes. As a liveness check it would restart every replica when the nodes
// are out of reach; as a readiness check it would take all of them out of service. Package health
// has rules that do neither.
//
// Errors: ErrNotRunning, ErrDrainTimeout while lead runs on beyond its term, or a
// *redlock.QuorumError.
func (e *Elector) Healthy() error {
	switch t := e.term.Load(); {
	case t != nil && t.overruns():
		return ErrDrainTimeout
	case !e.running.Load():
		return ErrNotRunning
	case e.IsLeader(context.Background()) == nil:
		return nil
	}
	if err := e.q.Healthy(); err != nil {
		return fmt.Errorf("elector: %q: %w", e.election, err)
	}
	return nil
}

func (e *Elector) backoffMax(t *Term) time.Duration {
	if e.cfg.backoffMax > 0 {
		return e.cfg.backoffMax
	}
	return max(t.lease.TTL(), e.cfg.backoffMin)
}

// backoff returns the pause after a failure, without jitter. before is the pause after the failure
// before it, and zero for the first in a row.
func (e *Elector) backoff(t *Term, before time.Duration) time.Duration {
	return min(max(2*before, e.cfg.backoffMin), e.backoffMax(t))
}

// pause sleeps for three quarters to all of d, or until ctx ends.
func (e *Elector) pause(ctx context.Context, d time.Duration) {
	_ = clock.Sleep(ctx, d-time.Duration(rand.Int64N(int64(d)/4+1)))
}
