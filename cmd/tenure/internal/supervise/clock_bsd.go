//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package supervise

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// suspendAware goes on during sleep on macOS (clock_gettime(3)). On the others it may stand still,
// see Missing.
const suspendAware = unix.CLOCK_MONOTONIC

// rings is how often an alarm looks at the clock: timers of Go stand still during sleep.
const rings = 50 * time.Millisecond

// alarm rings at an instant.
type alarm struct {
	C chan struct{}

	mu   sync.Mutex
	at   instant // guarded by mu; 0 once it has rung
	stop chan struct{}
	end  chan struct{}
}

func newAlarm() (*alarm, error) {
	a := &alarm{C: make(chan struct{}, 1), stop: make(chan struct{}), end: make(chan struct{})}
	go func() {
		defer close(a.end)
		look := time.NewTicker(rings)
		defer look.Stop()
		for {
			select {
			case <-look.C:
				a.look()
			case <-a.stop:
				return
			}
		}
	}()
	return a, nil
}

func (a *alarm) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == 0 || now() < a.at {
		return
	}
	a.at = 0
	select {
	case a.C <- struct{}{}:
	default:
	}
}

// set has the alarm ring at an instant, and at no other.
func (a *alarm) set(at instant) {
	a.mu.Lock()
	a.at = max(at, 1)
	a.mu.Unlock()
	a.look()
}

func (a *alarm) close() {
	close(a.stop)
	<-a.end
}

// waiter waits for descriptors and for an instant.
type waiter struct{}

func newWaiter() (*waiter, error) { return &waiter{}, nil }

// wait returns at the instant, or when one of the descriptors can be read, or for no reason.
func (w *waiter) wait(until instant, fds ...int) {
	poll(max(min(until.sub(now()), rings), 0), fds...)
}

func hurry() {}
