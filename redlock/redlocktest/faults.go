package redlocktest

// Faults is what a test can do to a node without knowing whether it is one of
// this package or a real server process.
//
// Kill on a killed node, Freeze on a frozen one and Thaw on one that is not
// frozen change nothing and return nil.
type Faults interface {
	// URL is where clients reach the node. It never changes.
	URL() string

	// Kill ends the node as SIGKILL would: connections break, new ones are
	// refused. A frozen node is killed like any other.
	Kill() error

	// Freeze stops the node as SIGSTOP would: connections stay open and new
	// ones are accepted, but nothing is answered. Commands that arrive
	// meanwhile run when the node thaws, also those whose client has given up.
	Freeze() error

	// Thaw ends a Freeze.
	Thaw() error

	// Restart starts the node again at the same address, killing it first if it
	// is alive. With keepData false it comes back empty. Its script cache is
	// empty in either case, as a server's is.
	Restart(keepData bool) error
}

var _ Faults = (*Node)(nil)
