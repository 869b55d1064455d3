// Package agenda wakes jobs at times of the wall clock, all with one goroutine and one timer.
//
// It never sleeps for longer than Look. At each look it compares the wall clock with the monotonic
// one: if they have parted by more than Step since the last look, the clock was set or the machine
// was suspended, and every entry is woken to think again. A process that merely stood still needs
// no such care: its entries are woken late, and they see that on the clock.
package agenda

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

const (
	// Look is how long the agenda sleeps at most, and so how late it sees that the clock was set.
	Look = time.Second
	// Step is by how much the two clocks may part between two looks. NTP slews by 0.5 ms a second.
	Step = 50 * time.Millisecond
)

// Why tells an entry what woke it.
type Why int

// The reasons.
const (
	Due     Why = iota // its time has come
	Stepped            // the wall clock was set, or the machine was suspended
)

// Entry is one sleeper. Its zero value with a Wake sleeps in no agenda.
type Entry struct {
	// Wake is called on the agenda's goroutine, so it must not block. The entry sleeps no more, but
	// for one that a step has woken: that keeps its time.
	Wake func(why Why)

	at    time.Time
	index int // in the heap, from 1; 0 for none
}

// Agenda is a set of entries. It is safe for concurrent use.
type Agenda struct {
	wall func() time.Time
	poke chan struct{}

	mu      sync.Mutex
	entries entries // guarded by mu
}

// New makes an empty agenda. wall is the wall clock; nil for the real one.
func New(wall func() time.Time) *Agenda {
	if wall == nil {
		wall = time.Now
	}
	return &Agenda{wall: wall, poke: make(chan struct{}, 1)}
}

// Now is the wall clock's time, without a monotonic reading.
func (a *Agenda) Now() time.Time { return a.wall().Round(0) }

// Set has the entry woken at a time, and no more at the one that was set before. A time that has
// passed is at once.
func (a *Agenda) Set(e *Entry, at time.Time) {
	a.mu.Lock()
	e.at = at.Round(0)
	if e.index == 0 {
		heap.Push(&a.entries, e)
	} else {
		heap.Fix(&a.entries, e.index-1)
	}
	first := e.index == 1
	a.mu.Unlock()
	if first {
		select {
		case a.poke <- struct{}{}:
		default: // it is awake, or about to be
		}
	}
}

// Remove has the entry sleep no more. A call of its Wake may be under way.
func (a *Agenda) Remove(e *Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.index > 0 {
		heap.Remove(&a.entries, e.index-1)
	}
}

// Run wakes entries until ctx ends. It is to be called once at a time; entries stay between calls.
func (a *Agenda) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	wall, mono := a.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.poke:
		case <-timer.C:
		}
		now := a.Now()
		parted := now.Sub(wall) - time.Since(mono)
		wall, mono = now, time.Now()
		if parted > Step || parted < -Step {
			for _, e := range a.all() {
				e.Wake(Stepped)
			}
		}
		for e := a.due(now); e != nil && ctx.Err() == nil; e = a.due(now) {
			e.Wake(Due)
		}
		timer.Reset(a.next(a.Now()))
	}
}

// all returns the entries, the earliest first or nearly so.
func (a *Agenda) all() []*Entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*Entry(nil), a.entries...)
}

// due takes an entry whose time has come out of the agenda; nil if there is none.
func (a *Agenda) due(now time.Time) *Entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.entries) == 0 || a.entries[0].at.After(now) {
		return nil
	}
	return heap.Pop(&a.entries).(*Entry)
}

// next is for how long nothing is due, at most Look.
func (a *Agenda) next(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.entries) == 0 {
		return Look
	}
	return min(Look, max(0, a.entries[0].at.Sub(now)))
}

// entries is the heap.
type entries []*Entry

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return h[i].at.Before(h[j].at) }

func (h entries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *entries) Push(x any) {
	e := x.(*Entry)
	*h = append(*h, e)
	e.index = len(*h)
}

func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.index = 0
	return e
}
