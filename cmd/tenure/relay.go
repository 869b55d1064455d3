package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// relay passes signals on to the command of run and elect, or ends what tenure does while there is
// none.
type relay struct {
	caught chan os.Signal
	cancel context.CancelCauseFunc // ends what tenure does
	work   sync.WaitGroup

	mu      sync.Mutex
	command chan syscall.Signal // guarded by mu; nil while no command runs
	ending  syscall.Signal      // guarded by mu; the first signal that is to end tenure; 0 for none
}

// newRelay begins to catch signals. One that is to end tenure while no command runs ends the
// context, whose cause is then a *signalError with its exit code. SIGHUP or SIGINT that this
// process was started to ignore, as by nohup, stays ignored, for the command too; of others that
// cannot be known. The caller stops the relay.
func newRelay(parent context.Context) (context.Context, *relay) {
	ctx, cancel := context.WithCancelCause(parent)
	r := &relay{caught: make(chan os.Signal, 16), cancel: cancel}
	for _, s := range forwarded {
		if !signal.Ignored(s) {
			signal.Notify(r.caught, s)
		}
	}
	r.work.Go(func() {
		for s := range r.caught {
			r.take(s.(syscall.Signal)) // each of forwarded is one
		}
	})
	return ctx, r
}

// signalError is the cause with which a signal ends a command, or the wait for a lease.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "ended by the signal " + e.signal.String() }

func (r *relay) take(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(ending, s) {
		r.ending = cmp.Or(r.ending, s)
		if r.command == nil {
			r.cancel(exit(exitSignal+int(s), &signalError{s}))
		}
	}
	select {
	case r.command <- s:
	default: // there is none, or it has got so many that one more does not matter
	}
}

// begin has signals go to the command from now on, unless one has asked tenure to end.
func (r *relay) begin() (signals <-chan syscall.Signal, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending != 0 {
		return nil, false
	}
	r.command = make(chan syscall.Signal, 16)
	return r.command, true
}

// over says that the command has ended, and returns the signal that has asked tenure to end; 0 for
// none.
func (r *relay) over() syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.command = nil
	return r.ending
}

// stop catches no more signals, and ends the context.
func (r *relay) stop() {
	signal.Stop(r.caught)
	close(r.caught)
	r.work.Wait()
	r.cancel(nil)
}

// ending are the signals that ask a process to end.
var ending = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}
