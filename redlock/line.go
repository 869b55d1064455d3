package redlock

import (
	"container/list"
	"context"
	"sync"
)

// lines are the callers of this process who want a lease, a line for each key: the first asks the
// servers, with its own options, and the others wait until it has done so, in the order in which
// they came. For the servers they are one. Thousands that asked at once would take their votes from
// each other.
//
// Those who wait for a holder (Acquire) and those who do not (TryAcquire) stand in lines of their
// own. Of Acquire the next comes as soon as the first has its lease, and queues on the servers by
// the time at which it came: so it is in nobody's way of another process. Of TryAcquire the next
// comes as soon as the first has its answer. If that is that the key cannot be had, those who came
// before it was asked for have the same answer.
//
// A line is no lock for foreign code: while the first calls some, those who come pass the line, as
// that code may wait for one of them. See foreign.
type lines struct {
	mu    sync.Mutex
	lines map[wanted]*line // guarded by mu; of who asks; nil while nobody has come behind
	away  map[string]int   // guarded by mu; foreign code that those who are first call for a key
}

// wanted is what a line is for.
type wanted struct {
	key   string
	waits bool // for a holder
}

// line are those behind who asks. All of it is guarded by lines.mu.
type line struct {
	places list.List // of *place
	came   uint64    // how many have come
	before uint64    // as many had when the first began to ask
	last   error     // what the first has met, while it waits for a holder
}

// place is that of one in a line.
type place struct {
	number uint64
	at     *list.Element // guarded by lines.mu; nil once it was called
	turn   chan error    // of capacity 1; nil is for its turn, an error what it shares
}

func newLines() *lines { return &lines{lines: make(map[wanted]*line), away: make(map[string]int)} }

// inLine has an acquisition ask when it is its turn, or returns what another was told meanwhile.
func (a *acquisition) inLine(ctx context.Context, waits bool) (won *Lease, err error) {
	l, w := a.q.lines, wanted{a.keys.Name, waits}
	p, first := l.enter(w)
	if p != nil {
		if waits {
			a.came = a.q.queue.Place()
		}
		select {
		case err = <-p.turn:
		case <-ctx.Done():
			err = newContextError(ctx, a.keys.Name, a.shared(l.leave(w, p)))
		case <-a.q.done:
			l.leave(w, p)
			err = ErrClosed
		}
		if err != nil {
			return nil, a.shared(err)
		}
		first = true
	}
	var outcome error
	if a.first = first; first {
		defer func() { l.next(w, outcome, won != nil) }()
	}
	if waits {
		return a.wait(ctx)
	}
	won, err = a.try(ctx)
	outcome = shareable(err)
	return won, err
}

// shareable returns what an attempt came to if it says the same to all who asked then: that of
// TryAcquire, about the key and the nodes, and not about the caller.
func shareable(err error) error {
	switch err.(type) {
	case *HeldError, *SplitError, *QuorumError:
		return err
	}
	return nil
}

// shared is an error as this acquisition would have got it.
func (a *acquisition) shared(err error) error {
	held, ok := err.(*HeldError)
	if !ok {
		return err
	}
	if self := held.Holder.Identity == a.cfg.identity; self != held.Self {
		own := *held
		own.Self = self
		return &own
	}
	return held
}

// enter is called by one that wants a lease. It returns its place in the line; or none, if it is to
// ask at once. The first calls next when it has done so.
func (l *lines) enter(w wanted) (p *place, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	behind, busy := l.lines[w]
	switch {
	case !busy:
		l.lines[w] = nil
		return nil, true
	case l.away[w.key] > 0:
		return nil, false
	case behind == nil:
		behind = &line{}
		l.lines[w] = behind
	}
	behind.came++
	p = &place{number: behind.came, turn: make(chan error, 1)}
	p.at = behind.places.PushBack(p)
	return p, false
}

// leave is called by one that has given up its place. It returns what the first has met.
func (l *lines) leave(w wanted, p *place) (last error) {
	l.mu.Lock()
	if p.at != nil {
		behind := l.lines[w]
		behind.places.Remove(p.at)
		last = behind.last
		l.mu.Unlock()
		return last
	}
	l.mu.Unlock()
	if last = <-p.turn; last == nil { // it was called in that moment
		l.next(w, nil, false)
	}
	return last
}

// next is called by the first when it has done, and whether it has won. outcome is what those have
// to know who came before it asked; nil if they are to ask.
func (l *lines) next(w wanted, outcome error, won bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	behind := l.lines[w]
	for behind != nil && behind.places.Len() > 0 {
		p := behind.places.Remove(behind.places.Front()).(*place)
		p.at = nil
		if outcome != nil && p.number <= behind.before {
			p.turn <- outcome
			continue
		}
		if behind.before = behind.came; won {
			behind.last = nil
		}
		p.turn <- nil
		return
	}
	delete(l.lines, w)
}

// met notes what the first of those who wait for a holder has met, for those who give up behind it.
func (l *lines) met(key string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := wanted{key, true}
	if _, busy := l.lines[w]; !busy {
		return
	}
	if l.lines[w] == nil {
		l.lines[w] = &line{}
	}
	l.lines[w].last = err
}

// foreign calls foreign code for one that asks for the key.
func (l *lines) foreign(key string, call func()) {
	l.aside(key, 1)
	defer l.aside(key, -1)
	call()
}

func (l *lines) aside(key string, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away[key] += by; l.away[key] == 0 {
		delete(l.away, key)
	}
}
