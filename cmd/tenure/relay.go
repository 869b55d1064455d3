package main

import (
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
	ended  chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	command chan os.Signal    // guarded by mu; nil while no command runs
	ending  syscall.Signal    // guarded by mu; the first signal that is to end tenure; 0 for none
	cancel  func(cause error) // guarded by mu; ends what tenure does
}

// newRelay begins to catch signals. SIGHUP or SIGINT that this process was started to ignore, as by
// nohup, stays ignored, for the command too; of others that cannot be known. The caller stops the
// relay.
func newRelay(cancel func(cause error)) *relay {
	r := &relay{caught: make(chan os.Signal, 16), ended: make(chan struct{}), cancel: cancel}
	for _, s := range forwarded {
		if !signal.Ignored(s) {
			signal.Notify(r.caught, s)
		}
	}
	go r.run()
	return r
}

func (r *relay) run() {
	defer close(r.ended)
	for s := range r.caught {
		r.take(s)
	}
}

func (r *relay) take(s os.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number, _ := s.(syscall.Signal)
	ends := slices.Contains(ending, s)
	if ends && r.ending == 0 {
		r.ending = number
	}
	if r.command == nil {
		if ends {
			r.cancel(&signalError{number})
		}
		return
	}
	select {
	case r.command <- s:
	default: // the command has got so many that one more does not matter
	}
}

// begin has signals go to the command from now on, unless one has asked tenure to end.
func (r *relay) begin() (signals <-chan os.Signal, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending != 0 {
		return nil, false
	}
	r.command = make(chan os.Signal, 16)
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

func (r *relay) stop() {
	signal.Stop(r.caught)
	close(r.caught)
	<-r.ended
}

// ending are the signals that ask a process to end.
var ending = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}
