package redlocktest

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Node is one in-process Valkey node. It keeps its address and its
// [Node.SetDelay] for as long as its fleet lives, whatever happens to the
// server behind it.
//
// It is safe for concurrent use. No method waits for a client; [Node.Kill] and
// [Node.Restart] wait for the commands that are being executed.
type Node struct {
	addr     addr
	delay    atomic.Int64
	commands atomic.Int64

	mu sync.Mutex
	// guarded by mu
	proc   *process
	closed bool
}

// newNode starts a node at address, on loopback TCP or, with pipe, reachable
// through [Node.Dial] only. A TCP address may leave its port to the system.
//
// The node claims an uptime from before the test, so that a gate that keeps restarted nodes out
// lets a test begin at once.
func newNode(address string, pipe bool) (*Node, error) {
	n := &Node{addr: addr{network: "tcp", text: address}}
	if pipe {
		n.addr.network = "pipe"
	}
	listener, err := n.listen()
	if err != nil {
		return nil, err
	}
	if listener != nil {
		n.addr.text = listener.Addr().String()
	}
	return n, n.begin(listener, nil, time.Now().Add(-headStart))
}

// begin starts the node's next process.
func (n *Node) begin(listener net.Listener, store *miniredis.Miniredis, started time.Time) error {
	proc, err := newProcess(n, listener, store, started)
	if err != nil {
		return err
	}
	n.proc = proc
	return nil
}

// listen takes the node's TCP port. A pipe node has none, and no listener.
func (n *Node) listen() (net.Listener, error) {
	if n.addr.network == "pipe" {
		return nil, nil
	}
	l, err := net.Listen("tcp", n.addr.text)
	if err != nil {
		return nil, fmt.Errorf("redlocktest: cannot listen on %s: %w", n.addr.text, err)
	}
	return l, nil
}

// URL returns the node's address as a URL: valkey://127.0.0.1:port, or
// valkey://node-1.pipe:6379 for a node of [StartPipes], which only
// [Node.Dial] can reach.
func (n *Node) URL() string { return "valkey://" + n.addr.text }

// Kill ends the node's process: connections break and new ones are refused.
// Commands that already run finish first, queued ones never run. The data stays
// aside for [Node.Restart]; keys go on expiring. Always returns nil.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proc.kill()
	return nil
}

// Freeze stops the node from running and answering commands, as SIGSTOP would: connections stay
// open and new ones are accepted. Commands received meanwhile run on [Node.Thaw], in order for each
// connection, even if the client has closed its connection by then. A command that is being
// executed when Freeze is called may still take effect; its answer waits.
//
// A killed node cannot be frozen; that is an error.
func (n *Node) Freeze() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.proc.setFrozen(true) {
		return fmt.Errorf("redlocktest: %s is not running: call Restart before Freeze", n.addr.text)
	}
	return nil
}

// Thaw ends a [Node.Freeze]. It does not wait for the commands that it lets
// run. Always returns nil.
func (n *Node) Thaw() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proc.setFrozen(false)
	return nil
}

// Restart starts the node again at the same address, after killing it if it is alive. With keepData
// the node has every key that has not expired by now; otherwise it is empty. Like a restarted
// server it has an empty script cache, a new run_id and an uptime of zero, and it is not frozen.
//
// It fails if the fleet is closed, or if another process has taken the node's
// TCP port since the kill; the node then stays dead and Restart may be called
// again.
func (n *Node) Restart(keepData bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("redlocktest: %s cannot restart: its fleet is closed", n.addr.text)
	}
	n.proc.kill()
	listener, err := n.listen()
	if err != nil {
		return err
	}
	store := n.proc.store
	if !keepData {
		store = nil
	}
	return n.begin(listener, store, time.Now())
}

// SetDelay makes every answer of the node arrive d after the node gave it, from the next answer on;
// zero or less ends the delay. The command itself runs at once, as on a server whose answers travel
// slowly. Delays do not add up: ten commands sent together are all answered after d. No answer
// overtakes an earlier one of its connection. Published messages are delayed too.
func (n *Node) SetDelay(d time.Duration) { n.delay.Store(int64(d)) }

// JumpClock steps the node's wall clock by d, as an operator or a time daemon would: the node's
// TIME and uptime move, and its keys expire earlier by d. With a negative d keys expire later, as
// far as miniredis keeps them. A later [Node.Restart] starts with the right time, and keys that it
// keeps expire as after the jump. A killed node has no clock to jump. Expiries that a command gives
// as a time (EXAT, PXAT, EXPIREAT) go by the time of the test and not by the node's clock.
func (n *Node) JumpClock(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proc.jumpClock(d)
}

// FlushScripts empties the script cache, as SCRIPT FLUSH does.
func (n *Node) FlushScripts() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proc.ask("SCRIPT", "FLUSH")
}

// Dial connects to the node. It does not block for a node of [StartPipes]. A
// killed node gives an error that matches [syscall.ECONNREFUSED]; a frozen node
// accepts.
func (n *Node) Dial(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, n.dialError(err)
	}
	if n.addr.network == "tcp" {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", n.addr.text)
	}
	n.mu.Lock()
	proc := n.proc
	n.mu.Unlock()
	client, server := net.Pipe()
	if !proc.serve(server) {
		return nil, n.dialError(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	return pipeEnd{client, n.addr}, nil
}

func (n *Node) dialError(err error) error {
	return &net.OpError{Op: "dial", Net: n.addr.network, Addr: n.addr, Err: err}
}

// close kills the node for good.
func (n *Node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.proc.kill()
}

// addr is a node's address, on a network that may be "pipe".
type addr struct{ network, text string }

func (a addr) Network() string { return a.network }
func (a addr) String() string  { return a.text }

// port returns the address's part behind the last colon.
func (a addr) port() string { return a.text[strings.LastIndexByte(a.text, ':')+1:] }

// data returns the node's store, of the running or of the killed process.
func (n *Node) data() *miniredis.Miniredis {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc.store
}
