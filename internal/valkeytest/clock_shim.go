package valkeytest

import (
	"errors"
	"fmt"
	"time"
)

var errNoClock = errors.New("valkeytest: the server's clock cannot be moved: start the fleet with WithClock")

// JumpClock steps the server's wall clock by d, forward or backward, from its
// next look at it. Its monotonic clock goes on as before. The offset is kept
// when the server is restarted, as a machine's clock is, and does not depend on
// whether the server runs. Without [WithClock] or [WithAge] it is an error.
func (n *Node) JumpClock(d time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.clock == nil {
		return errNoClock
	}
	n.clock.add(d)
	return nil
}

// startAged runs a process that believes it was started an age ago: its clock
// is that much behind while it starts, and steps to the present after that. The
// caller holds mu.
func (n *Node) startAged() error {
	if n.cfg.age == 0 {
		return n.run()
	}
	n.clock.add(-n.cfg.age)
	err := n.run()
	n.clock.add(n.cfg.age)
	return err
}

// checkClock fails if the process does not look at the clock that it was given.
func (n *Node) checkClock(p *process) error {
	if n.clock == nil || n.clock.reader() == p.Pid() {
		return nil
	}
	return fmt.Errorf("valkeytest: the server at %s ignores LD_PRELOAD, so its clock cannot be moved: "+
		"use a valkey-server that is linked dynamically and not set-user-ID", n.Addr())
}
