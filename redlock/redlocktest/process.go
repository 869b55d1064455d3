package redlocktest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// process is one life of a node's server, from a start to a kill. After the kill its store can
// still be inspected, and may be handed to the next process.
type process struct {
	node    *Node
	runID   string
	started time.Time
	store   *miniredis.Miniredis
	server  *server.Server
	keeper  *server.Peer // asks

	listener net.Listener // nil for a pipe node

	clockOffset atomic.Int64 // of its wall clock, in nanoseconds

	mu   sync.Mutex
	turn *sync.Cond // on mu: frozen, dead or a link's queue has changed
	// guarded by mu
	frozen bool
	dead   bool
	links  map[*link]struct{}
	peers  map[*server.Peer]struct{} // connections that have sent a command
	line   []*server.Peer            // peers whose commands came while it was frozen, in that order; the first may run

	wg sync.WaitGroup // accept, and two a link: pump and take
}

// databases is how many a server has by default.
const databases = 16

// newProcess starts a process on the store of a killed one, or an empty process if store is nil. It
// accepts connections if there is a listener, which it owns from then on.
func newProcess(n *Node, listener net.Listener, store *miniredis.Miniredis, started time.Time) (*process, error) {
	p := &process{
		node:     n,
		runID:    newRunID(),
		started:  started,
		store:    store,
		keeper:   server.NewPeer(bufio.NewWriter(io.Discard)),
		listener: listener,
		links:    make(map[*link]struct{}),
		peers:    make(map[*server.Peer]struct{}),
	}
	p.turn = sync.NewCond(&p.mu)
	if p.store == nil {
		p.store = miniredis.NewMiniRedis()
		p.store.ClockTTL(true)
	} else {
		p.store.Ctx, p.store.CtxCancel = context.WithCancel(context.Background())
	}
	// Dial is the one way to start a Miniredis without its own listener.
	conn, err := p.store.Dial()
	if err != nil {
		if listener != nil {
			listener.Close()
		}
		return nil, fmt.Errorf("redlocktest: cannot start %s: %w", n.addr.text, err)
	}
	conn.Close()
	p.server = p.store.Server()
	p.ask("SCRIPT", "FLUSH")
	p.server.SetPreHook(p.intercept)
	if listener != nil {
		p.wg.Go(p.accept)
	}
	return p, nil
}

// accept serves connections until the listener is closed.
func (p *process) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.serve(conn)
	}
}

// serve hands a connection to the server and reports true. If the process is dead it closes the
// connection and reports false.
func (p *process) serve(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		conn.Close()
		return false
	}
	l := newLink(conn, p)
	p.links[l] = struct{}{}
	p.wg.Go(l.pump)
	p.wg.Go(l.take)
	p.server.ServeConn(l)
	return true
}

// intercept sees every command before miniredis runs it, and returns true for a command that
// miniredis should not run. It blocks a frozen process's commands. They run afterwards in the order
// in which they came, as a server reads its sockets.
func (p *process) intercept(c *server.Peer, cmd string, args ...string) bool {
	if c == p.keeper {
		return false
	}
	if p.fromClient(c) {
		lives, queued := p.running(c)
		if !lives {
			c.Close()
			return true
		}
		if queued {
			defer p.next()
			p.server.Dispatch(c, append([]string{cmd}, args...)) // comes here again
			return true
		}
		p.node.commands.Add(1)
	}
	switch cmd {
	case "INFO":
		if reply, ok := p.info(args); ok {
			c.WriteBulk(reply)
			return true
		}
	case "TIME":
		now := time.Now().Add(time.Duration(p.clockOffset.Load())).UnixMicro()
		c.WriteLen(2)
		c.WriteBulk(strconv.FormatInt(now/1_000_000, 10))
		c.WriteBulk(strconv.FormatInt(now%1_000_000, 10))
		return true
	case "SELECT":
		if n, err := strconv.Atoi(strings.Join(args, " ")); err == nil && (n < 0 || n >= databases) {
			c.WriteError("ERR DB index is out of range")
			return true
		}
	case "EVAL_RO", "EVALSHA_RO": // miniredis takes TIME for a command that writes
		p.node.commands.Add(-1) // it is counted again
		p.server.Dispatch(c, append([]string{strings.TrimSuffix(cmd, "_RO")}, args...))
		return true
	}
	return false
}

// ask runs a command in miniredis that no client has sent, and to which no fault applies. The
// caller holds the node's mu.
func (p *process) ask(command ...string) { p.server.Dispatch(p.keeper, command) }

// jumpClock moves the process's wall clock: its time, its uptime and the expiry of its keys. It
// does nothing if the process is dead.
func (p *process) jumpClock(d time.Duration) {
	p.mu.Lock()
	dead := p.dead
	p.mu.Unlock()
	if dead {
		return
	}
	p.clockOffset.Add(int64(d))
	p.store.FastForward(d)
}

// fromClient reports whether a peer is a connection, and not the throw-away peer with which a
// script calls commands. To block or refuse a script's calls would cut the script in two, which no
// fault does to a server. A script's peer has a Ctx from the start; a connection gets one with its
// first command.
func (p *process) fromClient(c *server.Peer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.peers[c]; ok {
		return true
	}
	if c.Ctx != nil {
		return false
	}
	p.peers[c] = struct{}{}
	c.OnDisconnect(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.peers, c)
	})
	return true
}

// running waits while the process is frozen, and then for the commands that came before. lives
// reports whether the process is alive. queued reports that the command has waited: the caller runs
// it, and then calls next.
func (p *process) running(c *server.Peer) (lives, queued bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isFirst := func() bool { return p.line[0] == c }
	if len(p.line) > 0 && isFirst() || len(p.line) == 0 && !p.frozen {
		return !p.dead, false
	}
	p.line = append(p.line, c)
	for (p.frozen || !isFirst()) && !p.dead {
		p.turn.Wait()
	}
	return !p.dead, true
}

// next lets the next command run of those that came while the process was frozen.
func (p *process) next() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = p.line[1:]
	p.turn.Broadcast()
}

// setFrozen reports false, and does nothing, if the process is dead.
func (p *process) setFrozen(frozen bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return false
	}
	p.frozen = frozen
	p.turn.Broadcast()
	return true
}

// kill ends the process and waits for its goroutines. Idempotent.
func (p *process) kill() {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	p.dead = true
	if p.listener != nil {
		p.listener.Close()
	}
	for l := range p.links {
		l.Conn.Close()
	}
	p.turn.Broadcast()
	p.mu.Unlock()

	// Blocking commands (BLPOP) end with the store's context, but miniredis may miss that wake-up.
	// The wake-up after any command is sent under its lock, and so is not missed.
	p.store.CtxCancel()
	p.ask("PING")
	// The server goes before the store: closing the store first takes the
	// server away under a script that is running.
	p.server.Close()
	p.store.Close()
	p.wg.Wait()
}

func (p *process) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn.Broadcast()
}
