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

// relay forwards signals to the command of run and elect. While no command runs, a signal that asks
// tenure to end cancels the context of its work.
type relay struct {
	caught chan os.Signal
	cancel context.CancelCauseFunc // cancels the context of tenure's work
	work   sync.WaitGroup

	mu      sync.Mutex
	command chan syscall.Signal // guarded by mu; nil while no command runs
	ending  syscall.Signal      // the first signal that asked tenure to end; 0 for none
}

// newRelay starts to catch signals. A signal that asks tenure to end while no command runs cancels
// the returned context. The cause is then an *exitError with the exit code, which wraps a
// *signalError. The caller stops the relay.
//
// If this process was started with SIGHUP or SIGINT ignored, as by nohup, that signal stays
// ignored, for the command too. Go does not report this for other signals.
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
			r.take(s.(syscall.Signal)) // all signals of forwarded have this type
		}
	})
	return ctx, r
}

// signalError means that a signal ended a command or the wait for a lease.
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
	default: // no command runs, or so many signals wait for it that one more does not matter
	}
}

// begin makes the relay forward signals to the command from now on. It reports false if a signal
// has already asked tenure to end.
func (r *relay) begin() (signals <-chan syscall.Signal, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending != 0 {
		return nil, false
	}
	r.command = make(chan syscall.Signal, 16)
	return r.command, true
}

// over tells the relay that the command has ended. It returns the signal that asked tenure to end,
// or 0 for none.
func (r *relay) over() syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.command = nil
	return r.ending
}

// stop stops catching signals and cancels the context.
func (r *relay) stop() {
	signal.Stop(r.caught)
	close(r.caught)
	r.work.Wait()
	r.cancel(nil)
}

// ending lists the signals that ask a process to end.
var ending = []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}
