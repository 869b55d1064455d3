package redlock

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

func init() {
	bridge.Of = func(quorum any) bridge.Quorum {
		if q, ok := quorum.(*Quorum); ok && !q.none() {
			return bridged{q}
		}
		return nil
	}
	bridge.Vacant = func(lease any) time.Duration { return lease.(*Lease).vacant }
	bridge.ReadRoster = readRoster
	bridge.Extends = func(quorum any, key string, opts any) (bool, error) {
		a, err := quorum.(*Quorum).newAcquisition(key, opts.([]LeaseOption))
		return err == nil && !a.cfg.manual, err
	}
}

// bridged is a Quorum as other packages of this module see it, see package bridge.
type bridged struct{ q *Quorum }

func (b bridged) Nodes() int                { return len(b.q.nodes) }
func (b bridged) Need() int                 { return b.q.need }
func (b bridged) TTL() time.Duration        { return b.q.cfg.lease.ttl }
func (b bridged) Quarantine() time.Duration { return b.q.cfg.quarantine() }
func (b bridged) RestartGate() bool         { return b.q.cfg.restartGate }
func (b bridged) TakesPart() bool           { return b.q.roster.Enters() }
func (b bridged) Now() time.Duration        { return time.Duration(b.q.clock.Now()) }
func (b bridged) Time() time.Time           { return b.q.now() }
func (b bridged) Prefix() string            { return b.q.cfg.prefix }
func (b bridged) Address(node int) string   { return b.q.nodes[node].addr }
func (b bridged) Logger() *slog.Logger      { return b.q.cfg.logger }
func (b bridged) Background(f func()) bool  { return b.q.later(f) }

func (b bridged) Extra(key any, make func() any) any {
	extra, ok := b.q.extras.Load(key)
	if !ok {
		extra, _ = b.q.extras.LoadOrStore(key, make())
	}
	return extra
}

func (b bridged) Hear(channel string, heard func(node int, message string)) (end func()) {
	return b.q.listener.Subscribe(channel, heard, nil) // which nodes cannot be heard, their warnings say
}

// now returns the latest time that the median of the servers' clocks may show, or the time of this
// process's clock if the median is not known.
func (q *Quorum) now() time.Time {
	if b, ok := q.clocks.Time(q.clock.Now()); ok {
		return time.Unix(0, int64(b.Hi))
	}
	return time.Now()
}

func (b bridged) Vote(node int) (votes bool, why error) {
	is := b.q.nodes[node].vote()
	return is.Votes, cmp.Or(is.Err, is.Warning)
}

func (b bridged) Name(key, suffix string) (string, error) {
	keys, err := b.q.cfg.keys(key)
	return keys.Lock + suffix, err
}

func (b bridged) Gates() (opened []uint64, more chan struct{}) {
	more = *b.q.opened.Load()
	for _, m := range b.q.nodes {
		status, n := m.Status(), uint64(0)
		if status.Reason() == nil {
			n = status.Opened
		}
		opened = append(opened, n)
	}
	return opened, more
}

// gateOpens tells those that wait for it that a node has opened its gate.
func (q *Quorum) gateOpens() {
	next := make(chan struct{})
	if opened := q.opened.Swap(&next); opened != nil {
		close(*opened)
	}
}

func (b bridged) Ask(ctx context.Context, question *bridge.Question) (answers func() []*bridge.Answer, err error) {
	q, op := b.q, Op(question.Op)
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	if !q.begin() {
		return nil, ErrClosed
	}
	defer q.rounds.Done()
	rd := q.newOperation(op, len(q.nodes)+1)
	rd.Decided = q.allHeard
	if question.Decided != nil {
		rd.Decided = func(replies []vote.Reply) bool { return question.Decided(answersIn(replies)) }
	}
	timeout := q.cfg.timeout(q.cfg.lease.ttl)
	expires := q.clock.Now().Add(timeout)
	for i := range q.nodes {
		asked := question.Call(i)
		if asked == nil {
			rd.Skip(i, wire.Refused)
			continue
		}
		if why := q.untold(i); why != nil && !asked.Script.Gated && !question.Reads {
			rd.Answer(i, vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: why, Unsent: true})
			continue
		}
		at := q.question(&wire.Keys{Name: question.Key, Lock: asked.Keys[0]})
		call := at.call(wire.GuestOps[[2]bool{asked.Script.Gated, question.Reads}])
		call.Guest = asked
		rd.send(ctx, at, call, expires, func(node int) bool { return node == i })
	}
	if rd.Wait(ctx, timeout) != nil {
		return nil, newContextError(ctx, question.Key, nil)
	}
	return func() []*bridge.Answer {
		o := rd.Outcome()
		all := answersIn(o.Replies)
		for i, rep := range o.Replies {
			m := q.nodes[i]
			all[i].Votes = m.votes() == nil
			switch {
			case rep.Verdict == wire.Failed:
				all[i].Err, all[i].Undone = m.failure(op, rep.Err), rep.Unsent || wire.IsAnswer(rep.Err)
			case rep.Verdict == wire.Pending && o.Expired:
				all[i].Err = m.failure(op, ErrTimeout)
			}
		}
		return all
	}, nil
}

// untold returns why this process may not send a node a write on which nothing depends; nil if it
// may. A node in quarantine takes such a write; a node that has no vote for another reason does
// not.
func (q *Quorum) untold(i int) error {
	if status := q.nodes[i].Status(); status.Until == 0 {
		return status.Reason()
	}
	return nil
}

// allHeard reports whether all nodes have answered that can be expected to. A node that failed when
// it was last asked anything is not waited for once another node has answered.
func (q *Quorum) allHeard(replies []vote.Reply) bool {
	for i := range replies {
		if replies[i].Verdict == wire.Pending && q.nodes[i].failing() == nil {
			return false
		}
	}
	return vote.Count(replies, wire.OK) > 0
}

// answersIn returns the answers in replies, without the errors of the other nodes.
func answersIn(replies []vote.Reply) []*bridge.Answer {
	all := make([]*bridge.Answer, len(replies))
	for i := range replies {
		rep := &replies[i]
		all[i] = &bridge.Answer{Texts: rep.More().Guest, At: time.Duration(rep.At)}
	}
	return all
}
