package scheduler

import (
	"sync"
	"time"
)

// workers is a group of goroutines that may be waited for while others are added.
type workers struct {
	mu sync.Mutex
	n  int           // guarded by mu
	no chan struct{} // guarded by mu; closed when n is zero; nil then
}

// Go calls f in a goroutine.
func (w *workers) Go(f func()) {
	w.mu.Lock()
	if w.n++; w.no == nil {
		w.no = make(chan struct{})
	}
	w.mu.Unlock()
	go func() {
		defer w.done()
		f()
	}()
}

func (w *workers) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 {
		close(w.no)
		w.no = nil
	}
}

// Wait waits until none is left, for a time at most, and reports whether that is so.
func (w *workers) Wait(most time.Duration) bool {
	w.mu.Lock()
	no := w.no
	w.mu.Unlock()
	if no == nil {
		return true
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-no:
		return true
	case <-timer.C:
		return false
	}
}
