package valkeytest

import (
	"errors"
	"fmt"
	"time"
)

var errNoClock = errors.New("valkeytest: the server's clock cannot be moved: start the fleet with WithClock")

// JumpClock steps the server's wall clock by d, forward or backward, from the server's next read of
// it. The monotonic clock goes on as before. As a machine's clock does, the offset outlives a
// restart, and may be changed while the server is down. Without [WithClock] or [WithAge] it is an
// error.
func (n *Node) JumpClock(d time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.clock == nil {
		return errNoClock
	}
	n.clock.add(d)
	return nil
}

// startAged runs a process that takes itself to be older by age: its clock is that much behind
// while it starts, and then steps to the present. The caller holds mu.
func (n *Node) startAged() error {
	if n.cfg.age == 0 {
		return n.run()
	}
	n.clock.add(-n.cfg.age)
	err := n.run()
	n.clock.add(n.cfg.age)
	return err
}

// checkClock fails if the process does not read the clock that it was given.
func (n *Node) checkClock(p *process) error {
	if n.clock == nil || n.clock.reader() == p.Pid() {
		return nil
	}
	return fmt.Errorf("valkeytest: the server at %s ignores LD_PRELOAD, so its clock cannot be moved: "+
		"use a valkey-server that is linked dynamically and not set-user-ID", n.Addr())
}
