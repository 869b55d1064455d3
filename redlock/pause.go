package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A pause is a floor in the record of a sequence (wire/pause.lua): no tick that was due before it
// is granted. It is written on a quorum of nodes, under a lease on a name of its own whose fencing
// token is its version, so that of two pauses the later one counts. The record is restored on a
// node that has lost it before that node answers for ticks again, see restore.go, and the pause
// with it. Due times are compared, not the times of grants: no server's clock decides, and a tick
// that was refused is refused for ever.
//
// A tick's grants and the pause share a node. There the tick came first, or the pause did, and the
// tick is refused. An acquisition that came first there may get the rest of its quorum later; so a
// pause waits for as long as one may take, from the last answer that it counts. Until then it may
// be granted, and its holder is seen on a node of that quorum.
//
// The pause of all keys of a prefix is in a record of its own, which a node that grants a tick has
// to know as well.

// AllKeys is the key of a pause that is for all keys of the prefix. No other key begins like that,
// and an empty one, which a program may pass by mistake, is refused.
const AllKeys = "}all"

// MaxPauseText bounds who paused and why, in bytes each.
const MaxPauseText = wire.MaxPauseText

// maxTickRound is how long the acquisition of a tick may take, from its first request, however long
// its TTL is; and so what a pause waits at most.
const maxTickRound = 5 * time.Second

// keepPause is for how long the nodes keep a floor after its time: longer than any tick may come
// late. One that is to be lifted by hand they keep.
const keepPause = 400 * 24 * time.Hour

// longestPause is how far away the end of a pause may be.
const longestPause = MaxKeep - keepPause

// forever is the floor of a pause without an end.
const forever = MaxSequence

// PauseOptions say for how long ticks are paused, and what is told to others.
type PauseOptions struct {
	// Until is the end: ticks that are due before it are not granted. At most 98 years away. Zero:
	// until Resume.
	Until time.Time
	// By and Reason are for people. At most MaxPauseText bytes of UTF-8 each.
	By, Reason string
}

// Pause is a pause as the nodes have it, or what a Resume has left of one.
type Pause struct {
	Key   string    // AllKeys for all of the prefix
	Until time.Time // ticks that were due before it are not granted; zero: until Resume
	Since time.Time // when it was written, by the median of the servers' clocks
	// Resumed is for what a Resume has left: ticks that were due before Until are skipped, and no
	// others.
	Resumed bool
	By      string
	// Reason is why, as By said.
	Reason string
	// Version is the fencing token of the lease under which it was written, or if a node had a
	// later mark then, one more than that of the mark. A later one is larger.
	Version uint64
	// Nodes is how many have it. A quorum puts it in force; on more it also outlives that one of
	// them is emptied before it is restored.
	Nodes int
}

// Active reports whether ticks that are due at a time are paused.
func (p Pause) Active(due time.Time) bool {
	return p.Version != 0 && (p.Until.IsZero() || due.Before(p.Until))
}

// floor is the time before which no tick may have been due that is granted, in ms since 1970.
func (p Pause) floor() int64 {
	switch {
	case p.Version == 0:
		return 0
	case p.Until.IsZero():
		return forever
	default:
		return p.Until.UnixMilli()
	}
}

func newPause(key string, m wire.Mark) Pause {
	p := Pause{Key: key, By: m.By, Reason: m.Why, Version: m.Version}
	if m.Version == 0 {
		return p
	}
	p.Since = time.UnixMilli(m.At)
	p.Resumed = m.Floor <= m.At
	if m.Floor != forever {
		p.Until = time.UnixMilli(m.Floor)
	}
	return p
}

// ErrPaused means that a tick is not granted because its key, or all of the prefix, is paused. The
// PausedError around it says by whom.
var ErrPaused = errors.New("redlock: paused")

// ErrUnknown means that a pause or its end may come into force or not: too few nodes answered when
// it was written. Repeat it, or take it back with the opposite.
var ErrUnknown = errors.New("redlock: the outcome is not known")

// PausedError reports a tick that was due before the floor of a pause. It matches ErrPaused. The
// tick is not granted later either.
type PausedError struct {
	Key   string
	Due   time.Time // when the tick was due: WithDue, or the time of WithTick; in whole milliseconds
	Pause Pause     // Key is AllKeys if all of the prefix is paused
}

func (e *PausedError) Error() string {
	what, until := shown(e.Key), "until it is resumed"
	if e.Pause.Key == AllKeys {
		what += " (and all keys of the prefix)"
	}
	if !e.Pause.Until.IsZero() {
		until = "for ticks before " + e.Pause.Until.Format(time.RFC3339Nano)
	}
	text := fmt.Sprintf("redlock: %s is paused %s by %s", what, until, nameOr(e.Pause.By))
	if e.Pause.Reason != "" {
		text += ": " + shown(e.Pause.Reason)
	}
	return text
}

// Is reports whether target is ErrPaused.
func (e *PausedError) Is(target error) bool { return target == ErrPaused }

// ErrorType returns the stable value "paused" for the error.type attribute of traces and metrics.
func (e *PausedError) ErrorType() string { return "paused" }

// Pause keeps ticks of a key (WithTick) from being granted, or those of all keys of the prefix
// (AllKeys), on all processes. When it returns nil, no tick that is due before the end is granted
// any more. One that was granted before may go on: ask Holder for it after Pause. Ticks that were
// due meanwhile are not granted afterwards either, nor are those that were late when it began: they
// are skipped. Leases without a tick, and so elections, are not paused.
//
// A pause that is there is replaced: also by one that ends earlier. Two callers follow one another.
//
// It takes about three round trips, and then waits until no acquisition goes on that began before:
// for half of the longest TTL under the prefix, and five seconds at most. It waits for a TTL at
// most while another one pauses or resumes the same key.
//
// It is not promised when all nodes are emptied while no process lives; when a quorum of them is
// emptied without persistence before one of them is restored, or while it runs (FLUSHALL); when one
// node is emptied by FLUSHALL during the call; nor to processes of a version of this library
// without it.
//
// Errors: *OptionError, ErrClosed, *HeldError (ErrHeld) while another one pauses or resumes, or
// *QuorumError (ErrNoQuorum) if too few nodes could be asked: nothing was done then. ErrUnknown if
// too few nodes answered after that, or ctx ended. If ctx ends in the wait, the error is ctx's own,
// and the pause stands: it is returned with the error, and acquisitions that began before it may
// still be granted. It is safe for concurrent use.
func (q *Quorum) Pause(ctx context.Context, key string, o PauseOptions) (Pause, error) {
	floor := int64(forever)
	if !o.Until.IsZero() {
		floor = o.Until.UnixMilli()
		if floor < 1 || floor >= forever {
			return Pause{}, &OptionError{"Pause", fmt.Sprintf("the end %v is no time that ticks may have", o.Until)}
		}
		if !q.none() {
			switch now := q.now(); {
			case o.Until.Before(now):
				return Pause{}, &OptionError{"Pause", fmt.Sprintf("the end %v has passed: it would pause nothing", o.Until)}
			case o.Until.After(now.Add(longestPause)):
				return Pause{}, &OptionError{"Pause", fmt.Sprintf("the end %v is more than 98 years away, and nodes keep no pause for longer: leave Until out, and resume", o.Until)}
			}
		}
	}
	p, err := q.mark(ctx, key, floor, o)
	if err != nil {
		return p, err
	}
	longest := min(q.cfg.longestTTL()/2, maxTickRound)
	select {
	case <-time.After(longest + time.Duration(float64(longest)*q.cfg.drift) + driftFloor):
		return p, nil
	case <-ctx.Done():
		return p, newContextError(ctx, key, nil)
	case <-q.done:
		return p, ErrClosed
	}
}

// Resume ends a pause: ticks that are due from now on are granted, by the median of the servers'
// clocks. Those that were due before are not. It ends the pause of the key, or that of all keys
// (AllKeys), and not the other one. Where nothing is paused it skips no tick. What a Pause with
// ErrUnknown has left on some nodes it takes back; ticks that this would have skipped may be
// skipped.
//
// Until of o has no meaning here. Errors are those of Pause.
func (q *Quorum) Resume(ctx context.Context, key string, o PauseOptions) (Pause, error) {
	return q.mark(ctx, key, resumed, o)
}

// resumed stands for the floor of a Resume, which depends on the pause that it ends.
const resumed = 0

// Paused reads the pause of a key, or that of all keys (AllKeys), from a quorum of nodes that know
// it. Version is 0 if there was never one. Errors are those of Sequence.
func (q *Quorum) Paused(ctx context.Context, key string) (Pause, error) {
	keys, err := q.pausable(ctx, key)
	if err != nil {
		return Pause{}, err
	}
	s, err := q.sequence(ctx, keys)
	if err != nil {
		return Pause{}, err
	}
	s.pause.Key = key
	return s.pause, nil
}

// now is the median of the servers' clocks, at most, or this process's clock where that is not
// known.
func (q *Quorum) now() time.Time {
	if b, ok := q.clocks.Time(q.clock.Now()); ok {
		return time.Unix(0, int64(b.Hi))
	}
	return time.Now()
}

// pausable are the names of a key, or of all.
func (q *Quorum) pausable(ctx context.Context, key string) (*wire.Keys, error) {
	if q.none() {
		return nil, ErrClosed
	}
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	if key == AllKeys {
		return &q.all, nil
	}
	keys, err := q.cfg.keys(key)
	return &keys, err
}

// mark writes a mark under a lease of its own. Its floor is not below the time, or where no pause
// is ended, that of the last one: a tick that an earlier pause has skipped stays so.
func (q *Quorum) mark(ctx context.Context, key string, floor int64, o PauseOptions) (Pause, error) {
	keys, err := q.pausable(ctx, key)
	if err != nil {
		return Pause{}, err
	}
	if err := q.cfg.checkPart(); err != nil {
		return Pause{}, err
	}
	for _, text := range []string{o.By, o.Reason} {
		if len(text) > MaxPauseText || !utf8.ValidString(text) {
			return Pause{}, &OptionError{"Pause", fmt.Sprintf("By and Reason must be at most %d bytes of UTF-8 each, not %d", MaxPauseText, len(text))}
		}
	}
	lease, err := q.leaseToMark(ctx, keys)
	if err != nil {
		return Pause{}, err
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }()
	now := q.now()
	least := now.UnixMilli()
	if floor == resumed {
		s, err := q.sequence(ctx, keys)
		if err != nil {
			return Pause{}, err
		}
		if last := s.pause; !last.Active(now) {
			least = last.floor()
		}
	}
	mark := wire.Mark{Version: lease.FencingToken(), Floor: max(floor, least), At: now.UnixMilli(), By: o.By, Why: o.Reason}
	nodes, newer, err := q.writeMark(ctx, keys, mark)
	if last := latestMark(newer); last.Version >= mark.Version && lease.Err() == nil {
		q.cfg.logger.WarnContext(ctx, "redlock: a node had a later mark of a pause than the one that is written now: it is replaced",
			"key", keys.Name, "version", mark.Version, "later", last.Version, "by", shown(last.By))
		mark.Version = last.Version + 1
		nodes, newer, err = q.writeMark(ctx, keys, mark)
	}
	if last := latestMark(newer); err != nil && last.Version > 0 {
		err = fmt.Errorf("%w (a node has a later mark: version %d, and this one's is %d)", err, last.Version, mark.Version)
	}
	if err == nil && lease.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrUnknown, lease.Err())
	}
	if err != nil {
		return Pause{}, err
	}
	p := newPause(key, mark)
	p.Nodes = nodes
	return p, nil
}

// leaseToMark acquires the lease under which the mark of a key is written. It waits for a TTL while
// another one has it.
func (q *Quorum) leaseToMark(ctx context.Context, keys *wire.Keys) (*holding, error) {
	names := wire.MarkKeys(q.cfg.prefix, keys.Name)
	if keys == &q.all {
		names = wire.MarkKeys(q.cfg.prefix, "")
		names.Name = keys.Name
	}
	cfg := q.cfg.plain
	cfg.minHold = 0
	end := q.clock.Now().Add(cfg.ttl)
	for {
		a := &acquisition{q: q, names: names, cfg: &cfg}
		a.keys = &a.names
		lease, err := a.try(ctx)
		if !errors.Is(err, ErrHeld) && !errors.Is(err, ErrSplit) || q.clock.Now() > end {
			return lease, err
		}
		select {
		case <-ctx.Done():
			return nil, newContextError(ctx, keys.Name, err)
		case <-q.done:
			return nil, ErrClosed
		case <-time.After(markPause):
		}
	}
}

// markPause is between two tries to be the only one who pauses a key.
const markPause = 20 * time.Millisecond

// writeMark writes a mark to all nodes that know the record, and has those know it that do not. It
// returns how many have it, which is a quorum at least, or an error; and of each node the mark that
// it has instead, because that is newer.
func (q *Quorum) writeMark(ctx context.Context, keys *wire.Keys, mark wire.Mark) (nodes int, newer []wire.Mark, err error) {
	if !q.begin() {
		return 0, nil, ErrClosed
	}
	defer q.rounds.Done()
	for restores := 0; ; restores++ {
		rd := q.newOperation(OpPause, q.need)
		rd.Decided = func([]vote.Reply) bool { return false } // until all have answered
		at := q.question(keys)
		call := at.call(wire.Pause)
		call.Write = &wire.Write{Mark: mark, Lifetime: milliseconds(q.lifetimeOf(mark))}
		timeout := q.cfg.timeout(q.cfg.lease.ttl)
		rd.send(ctx, at, call, q.clock.Now().Add(timeout), nil)
		if rd.Wait(ctx, max(timeout, clock.AtOnce), &q.waits) != nil {
			return 0, nil, fmt.Errorf("%w: %w", ErrUnknown, newContextError(ctx, keys.Name, nil))
		}
		o := rd.Outcome()
		wrote := vote.Count(o.Replies, wire.OK)
		unknowing := unknowingIn(o.Replies, ofKey)
		if len(unknowing) > 0 && restores < maxRestores {
			if q.restore(ctx, &restoration{keys: keys, nodes: unknowing, keep: keepPause})[0] == nil {
				continue
			}
		}
		newer = make([]wire.Mark, len(q.nodes))
		for i, rep := range o.Replies {
			if rep.Verdict == wire.Refused && rep.More().Record != nil {
				newer[i] = rep.More().Record.Mark
			}
		}
		if wrote < q.need {
			return 0, newer, fmt.Errorf("%w: %w", ErrUnknown, q.quorumError(OpPause, keys.Name, o))
		}
		return wrote, newer, nil
	}
}

// lifetimeOf is how long the nodes keep a record with that mark at least.
func (q *Quorum) lifetimeOf(m wire.Mark) time.Duration {
	left := time.UnixMilli(m.Floor).Sub(q.now()) // or the longest Duration
	return min(max(left, 0), longestPause) + keepPause
}

// pausedIn returns the pause for which nodes have refused a tick; nil if none has.
func (a *acquisition) pausedIn(replies []vote.Reply) *PausedError {
	if !a.cfg.isTick() {
		return nil
	}
	due := a.cfg.once.due
	key, mark := "", wire.Mark{}
	for i := range replies {
		rep := &replies[i]
		if rep.Verdict != wire.Refused || rep.More().Record == nil {
			continue
		}
		if m := rep.More().Record.Mark; rep.More().All == nil && m.Floor > due && m.Version > mark.Version {
			key, mark = a.keys.Name, m
		} else if rep.More().All != nil && mark.Version == 0 {
			key, mark = AllKeys, rep.More().All.Mark
		}
	}
	if mark.Version == 0 {
		return nil
	}
	return &PausedError{Key: a.keys.Name, Due: time.UnixMilli(due), Pause: newPause(key, mark)}
}

// spreadPauses has all nodes know the pause that one of those that answered knows: a node that was
// out of reach when it was written, or lifted, learns it so.
func (q *Quorum) spreadPauses(at *attempt, replies []vote.Reply) {
	if !at.cfg.isTick() {
		return
	}
	own, all := make([]wire.Mark, len(replies)), make([]wire.Mark, len(replies))
	knows := make([]bool, len(replies))
	differAll := false
	for i := range replies {
		rep := &replies[i]
		if rep.More().Record == nil || rep.Verdict != wire.OK && rep.Verdict != wire.Refused {
			continue
		}
		own[i], knows[i] = rep.More().Record.Mark, true
		differAll = differAll || rep.Verdict == wire.OK || rep.More().All == nil
		if rep.More().All != nil {
			all[i] = rep.More().All.Mark
		}
	}
	newest := q.newest(own)
	for i := range own {
		if knows[i] && own[i].Version < newest.Version {
			q.spread(at.keys, newest)
			break
		}
	}
	if newest := q.newest(all); newest.Version != 0 && differAll {
		q.spread(&q.all, newest)
	}
}

// spreadLate is for a node that refuses a tick that a quorum has granted: it has not heard that a
// pause has ended, or the others have not heard of it.
func (q *Quorum) spreadLate(at *attempt, node int, rep *vote.Reply) {
	marks, keys := make([]wire.Mark, len(q.nodes)), at.keys
	switch {
	case rep.Verdict != wire.Refused || rep.More().Record == nil || !at.cfg.isTick():
		return
	case rep.More().All != nil:
		keys, marks[node] = &q.all, rep.More().All.Mark
	case rep.More().Record.Mark.Floor > at.cfg.once.due:
		marks[node] = rep.More().Record.Mark
	}
	if newest := q.newest(marks); newest.Version != 0 {
		q.spread(keys, newest)
	}
}

// newest is the newest mark of those that nodes have, each one or none, that is passed on to
// others. A version is a fencing token, and those follow the clocks. One that is ahead of them is
// passed on if a quorum has it: it is what a pause was given while counters led the clocks.
// Anything else may be damaged, on one node, and is to lift or make no pause on the others.
func (q *Quorum) newest(marks []wire.Mark) (newest wire.Mark) {
	latest := uint64(q.now().Add(q.cfg.skew() + markLead).UnixMicro())
	for i, m := range marks {
		have := 0
		for _, other := range marks {
			if other.Version == m.Version {
				have++
			}
		}
		switch {
		case m.Version <= newest.Version:
		case m.Version <= latest || have >= q.need:
			newest = m
		case q.oddMark.Swap(m.Version) != m.Version:
			q.cfg.logger.Warn("redlock: a node has a mark of a pause that is ahead of the clocks and that no quorum is known to have: no other node follows it; pause or resume to replace it",
				"node", q.nodes[i].addr, "version", m.Version, "by", shown(m.By))
		}
	}
	return newest
}

// safest is the mark that is restored: the newest that is passed on, unless one that may be damaged
// pauses for longer. It may be a pause that somebody relies on.
func (q *Quorum) safest(marks []wire.Mark) wire.Mark {
	safest := q.newest(marks)
	for _, m := range marks {
		if m.Version > safest.Version && m.Floor > safest.Floor {
			safest = m
		}
	}
	return safest
}

// markLead is by how much more than the skew a version may lead what is known of the clocks: that
// may be as old as a second.
const markLead = time.Second

// latestMark is the one with the largest version.
func latestMark(marks []wire.Mark) (latest wire.Mark) {
	for _, m := range marks {
		if m.Version > latest.Version {
			latest = m
		}
	}
	return latest
}

// spread writes a mark to all nodes, or a newer one that some have.
func (q *Quorum) spread(keys *wire.Keys, mark wire.Mark) {
	q.later(func() {
		for range len(q.nodes) {
			_, newer, _ := q.writeMark(context.Background(), keys, mark)
			next := q.newest(newer)
			if next.Version <= mark.Version {
				return
			}
			mark = next
		}
	})
}
