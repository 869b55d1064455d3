// Package processes runs the replicas of the demonstration as processes: the program starts itself
// once more for each. A replica is told its settings in a line of JSON on its standard input, stops
// in order when that ends, and reports in lines of JSON on its standard output. No replica outlives
// the program, frozen ones neither: on Linux the kernel sees to that.
package processes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/demo"
	"github.com/tenure-dev/tenure/examples/internal/demo/service"
	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/internal/child"
)

// variable makes a program a replica of the demonstration.
const variable = "TENURE_DEMO_REPLICA"

// IsReplica reports whether this process is a replica that Launch has started.
func IsReplica() bool { return os.Getenv(variable) != "" }

// Main is a replica's process. It returns the exit code.
func Main() int {
	slog.SetLogLoggerLevel(slog.LevelError) // the page shows what happens
	ctx, stop := replicas.Context()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	replicas.ExitAfter(ctx)

	input := bufio.NewReader(os.Stdin)
	var s service.Settings
	if err := json.NewDecoder(input).Decode(&s); err != nil {
		replicas.Complain(errors.New("another process starts this one and tells it what to do; " +
			"to start the program yourself unset " + variable))
		return 2
	}
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	dial := func(ctx context.Context, node int) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", s.Links)
		if err != nil {
			return nil, err
		}
		if _, err := conn.Write(demo.Greeting(s.Number, node)); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
	if err := service.Serve(ctx, s, dial, service.Lines(os.Stdout)); err != nil {
		replicas.Complain(err)
		return 1
	}
	return 0
}

// Links listens for the replicas' connections, on loopback, and has the demonstration serve them.
type Links struct {
	listener net.Listener
	work     sync.WaitGroup
}

// Listen takes a free port.
func Listen() (*Links, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the replicas' connections: %w", err)
	}
	return &Links{listener: listener}, nil
}

// Addr is where replicas dial: service.Settings.Links.
func (l *Links) Addr() string { return l.listener.Addr().String() }

// Serve accepts connections until Close.
func (l *Links) Serve(d *demo.Demo) {
	l.work.Go(func() {
		for {
			conn, err := l.listener.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // such as too many open files
				time.Sleep(acceptPause)
				continue
			}
			l.work.Go(func() { d.Serve(conn) })
		}
	})
}

const acceptPause = 10 * time.Millisecond

// Close ends the listening, and waits for the connections, which end with the demonstration.
func (l *Links) Close() {
	_ = l.listener.Close()
	l.work.Wait()
}

// process is a replica's process.
type process struct {
	*child.Child
	stdin io.Closer
}

func (p *process) PID() int { return p.Pid() }
func (p *process) Stop()    { _ = p.stdin.Close() }

// Launch starts a replica, as demo.Config.Launch says.
func Launch(s service.Settings, report func(service.Report), exited func(error)) (demo.Process, error) {
	line, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd, err := child.Self(variable + "=" + s.Replica)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	cmd.Stdout = child.Lines(func(line string) {
		var r service.Report
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			replicas.Complain(fmt.Errorf("unexpected output of replica %s: %.100q", s.Replica, line))
			return
		}
		report(r)
	})
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c, err := child.Start(cmd)
	if err != nil {
		return nil, err
	}
	// One that has died already does not read it. Its end is reported like any other.
	_, _ = stdin.Write(append(line, '\n'))
	go func() { exited(c.Err()) }() // ends with the process
	return &process{c, stdin}, nil
}
