package redlock

import (
	"container/list"
	"context"
	"sync"
)

// lines are the callers of this process that want a lease, a line for each key. The first caller in
// a line asks the servers, with its own options. The others wait until it has done so, in the order
// in which they came. To the servers a line is one caller. Thousands that asked at once would take
// votes from each other.
//
// Callers of Acquire and of TryAcquire have lines of their own. In a line of Acquire the next
// caller asks as soon as the first has its lease. It queues on the servers by the time at which it
// came, so it overtakes no waiter of another process. In a line of TryAcquire the next caller asks
// as soon as the first has its answer. If that is that the key cannot be had, the callers that came
// before the first asked get the same answer.
//
// A line is no lock for foreign code, which may wait for another caller of the same key. So callers
// that come while the first calls foreign code pass the line. See foreign.
type lines struct {
	mu    sync.Mutex
	lines map[wanted]*line // guarded by mu; while a caller asks; nil while no other has come behind it
	away  map[string]int   // guarded by mu; calls of foreign code under way, by key
}

// wanted names a line.
type wanted struct {
	key   string
	waits bool // for a holder: the line is one of Acquire
}

// line is the callers behind the one that asks. All of it is guarded by lines.mu.
type line struct {
	places list.List // of *place
	came   uint64    // how many callers have come
	before uint64    // how many had come when the first began to ask
	last   error     // the error of the first's last attempt, while it waits for a holder
}

// place is a caller's place in a line.
type place struct {
	number uint64
	at     *list.Element // guarded by lines.mu; nil once the caller has its turn, or an answer
	turn   chan error    // of capacity 1; nil: the caller's turn; an error: the answer that it shares
}

func newLines() *lines { return &lines{lines: make(map[wanted]*line), away: make(map[string]int)} }

// inLine has the acquisition ask when it is its turn, or returns the answer that another caller got
// meanwhile.
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

// shareable returns the error of a TryAcquire if it holds for all callers of that time: it is about
// the key or the nodes, and not about the caller. Otherwise it returns nil.
func shareable(err error) error {
	switch err.(type) {
	case *HeldError, *SplitError, *QuorumError:
		return err
	}
	return nil
}

// shared returns another caller's error as this acquisition would have got it.
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

// enter is called by a caller that wants a lease. It returns the caller's place in the line, or nil
// if the caller is to ask at once. The first caller of a line calls next when it has asked; a
// caller that passes the line is not the first.
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

// leave is called by a caller that gives up its place. It returns the last error of the first
// caller; nil if there is none.
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
	if last = <-p.turn; last == nil { // it got its turn in that moment, and passes it on
		l.next(w, nil, false)
	}
	return last
}

// next is called by the first caller when it has asked. won says whether it has the lease. outcome
// is the answer for the callers that came before it asked; nil if they are to ask.
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

// met notes the error that the first caller of Acquire has met, for the callers behind it that give
// up.
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

// foreign calls foreign code for a caller that asks for the key.
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
