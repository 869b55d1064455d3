package valkeytest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/child"
)

const (
	// portAttempts bounds how often a fresh node tries another port.
	portAttempts = 20

	// highestPort leaves room for the cluster bus at port + 10000.
	highestPort = 55535
)

// Node is one server. It keeps its address for as long as its fleet lives, whatever happens to its
// process; on Linux no other process meanwhile gets its port by asking for any free port. It is
// safe for concurrent use.
type Node struct {
	cfg  *config
	dir  string
	port int // set before New returns

	mu sync.Mutex
	// guarded by mu
	held     port // reserves port, also while no server runs
	proc     *process
	clock    *clockShim    // nil without WithClock
	observer valkey.Client // nil until asked for
	closed   bool
}

// startAnywhere starts the node for the first time, on a free port.
func (n *Node) startAnywhere() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cfg.clockLibrary != "" {
		var err error
		if n.clock, err = newClockShim(n.cfg.clockLibrary, filepath.Join(n.dir, "clock")); err != nil {
			return err
		}
	}
	for range portAttempts {
		var err error
		if n.held, n.port, err = freePort(); err != nil {
			return err
		}
		if n.port <= highestPort {
			if err := n.startAged(); !errors.Is(err, errPortTaken) {
				return err
			}
		}
		err = n.held.close()
		if n.held = (port{}); err != nil {
			return err
		}
	}
	return fmt.Errorf("valkeytest: %d ports in a row were above %d, or taken while a server was starting", portAttempts, highestPort)
}

// run starts a process and waits until it answers. The caller holds mu.
func (n *Node) run() error {
	data := filepath.Join(n.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("valkeytest: no directory for a server: %w", err)
	}
	var environment []string
	if n.clock != nil {
		environment = n.clock.environment()
	}
	proc, err := launch(n.cfg.binary, filepath.Join(n.dir, "server.log"), n.args(data), environment)
	if err != nil {
		return err
	}
	if err := proc.awaitReady(n); err != nil {
		return errors.Join(err, proc.kill())
	}
	if err := n.checkClock(proc); err != nil {
		return errors.Join(err, proc.kill())
	}
	n.proc = proc
	return nil
}

func (n *Node) args(dir string) []string {
	var args []string
	if n.cfg.file != "" {
		args = append(args, n.cfg.file)
	}
	if n.cfg.tls != nil {
		args = append(args, "--port", "0", "--tls-port", strconv.Itoa(n.port))
	} else {
		args = append(args, "--port", strconv.Itoa(n.port))
	}
	args = append(args,
		"--bind", "127.0.0.1",
		"--dir", dir,
		"--save", "",
		"--daemonize", "no",
	)
	if n.cfg.persistence {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	if n.cfg.password != "" && n.cfg.user == "" {
		args = append(args, "--requirepass", n.cfg.password)
	}
	return append(args, n.cfg.args...)
}

// Addr returns host:port. It never changes.
func (n *Node) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)) }

// URL returns valkey://host:port, or valkeys:// with TLS, with the user and the
// password if there is one. It never changes.
func (n *Node) URL() string {
	u := url.URL{Scheme: "valkey", Host: n.Addr()}
	if n.cfg.tls != nil {
		u.Scheme = "valkeys"
	}
	if n.cfg.password != "" {
		u.User = url.UserPassword(n.cfg.user, n.cfg.password)
	}
	return u.String()
}

// Pid returns the process's id, and zero if the server is not running.
func (n *Node) Pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.proc.Running() {
		return 0
	}
	return n.proc.Pid()
}

// Kill sends SIGKILL and waits for the end. A server that is not running stays
// so.
func (n *Node) Kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc.kill()
}

// Stop sends SIGTERM and waits for the end, at most 10 s; then it kills the server and returns an
// error. It thaws a frozen server first. A server that is not running stays so.
func (n *Node) Stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc.Terminate(endWithin)
}

// Freeze sends SIGSTOP and returns when the process has stopped. A server that
// is not running cannot be frozen; that is an error.
func (n *Node) Freeze() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.proc.Running() {
		return errNotRunning
	}
	return n.proc.Freeze()
}

// Thaw sends SIGCONT. It does nothing to a server that is not running.
func (n *Node) Thaw() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.proc.Thaw(); err != child.ErrEnded {
		return err
	}
	return nil
}

// Restart starts the server again at the same address, after SIGKILL if it is running, and waits
// until it answers. With keepData the server loads what it had acknowledged, which needs
// [WithPersistence], or what the file of [WithConfig] has it keep; otherwise its directory is
// empty.
//
// If another process has taken the port, Restart waits for it for 15 s, then fails. The node stays
// dead, and Restart may be called again.
func (n *Node) Restart(keepData bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return fmt.Errorf("valkeytest: %s cannot restart: its fleet is closed", n.Addr())
	case keepData && !n.cfg.persistence && n.cfg.file == "":
		return fmt.Errorf("valkeytest: %s has no data to keep: start the fleet with WithPersistence or WithConfig", n.Addr())
	}
	if err := n.proc.kill(); err != nil {
		return err
	}
	if !keepData {
		if err := os.RemoveAll(filepath.Join(n.dir, "data")); err != nil {
			return fmt.Errorf("valkeytest: cannot remove a server's data: %w", err)
		}
	}
	if err := n.runHere(); err != nil {
		return err
	}
	return n.reviveObserver()
}

// runHere runs the server on the port that the node already has.
func (n *Node) runHere() error {
	for deadline := time.Now().Add(readyWithin); ; time.Sleep(50 * time.Millisecond) {
		err := n.run()
		if !errors.Is(err, errPortTaken) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("valkeytest: another process took %s while its server was down: %w", n.Addr(), err)
		}
	}
}

// close kills the server for good.
func (n *Node) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	err := n.proc.kill()
	if n.observer != nil {
		n.observer.Close()
	}
	if n.clock != nil {
		err = errors.Join(err, n.clock.close())
		n.clock = nil
	}
	return errors.Join(err, n.held.close())
}
