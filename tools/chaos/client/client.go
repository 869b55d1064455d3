package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
)

// ProbeGrace is how much longer than its TTL a key may take to be acquired once the faults are over.
const ProbeGrace = 2 * time.Second

// client is one life of a client.
type client struct {
	Assignment
	quorum   *redlock.Quorum
	journal  *journal.Writer
	out      io.Writer
	attempts atomic.Int64
}

// Main is the process. It returns its exit status: 0 if it was stopped in order.
func Main(in io.Reader, out io.Writer) int {
	if err := run(in, out); err != nil {
		fmt.Fprintln(os.Stderr, "chaos client:", err)
		return 1
	}
	return 0
}

func run(in io.Reader, out io.Writer) (err error) {
	input := bufio.NewReader(in)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no assignment: this process is started by the chaos program: %w", err)
	}
	c := &client{out: out}
	if err := json.Unmarshal(line, &c.Assignment); err != nil {
		return fmt.Errorf("assignment: %w", err)
	}
	if c.journal, err = journal.Create(c.Journals, c.Name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.journal.Close()) }()
	log, err := os.Create(filepath.Join(c.Journals, c.Name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	before := goleak.IgnoreCurrent()
	if c.quorum, err = c.open(slog.New(slog.NewTextHandler(log, nil))); err != nil {
		return err
	}
	if err := errors.Join(c.serve(input), c.quorum.Close()); err != nil {
		return err
	}
	stop := journal.Record{Kind: journal.Stop}
	if err := goleak.Find(before); err != nil {
		stop.Text = err.Error()
	}
	stop.At = journal.Now()
	return c.journal.Append(stop)
}

// serve works, and obeys commands until it is told to stop.
func (c *client) serve(input *bufio.Reader) error {
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	rest := sync.OnceFunc(func() {
		cancel()
		workers.Wait()
	})
	defer rest()
	failed := make(chan error, c.Workers)
	for i := range c.Workers {
		w, err := c.newWorker(i)
		if err != nil {
			return err
		}
		workers.Go(func() {
			defer w.conn.Close()
			if err := w.run(ctx); err != nil {
				failed <- err
			}
		})
	}
	c.say(Ready)
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return fmt.Errorf("orphaned: %w", err)
		}
		select {
		case err := <-failed:
			return err
		default:
		}
		switch command, argument, _ := strings.Cut(strings.TrimSpace(line), " "); command {
		case Settle:
			rest()
			if err := c.settle(); err != nil {
				return err
			}
			c.say(Settled)
		case Probe:
			if err := c.probe(strings.Fields(argument)); err != nil {
				return err
			}
			c.say(Probed)
		case Stop:
			return nil
		default:
			return fmt.Errorf("unknown command %q", command)
		}
	}
}

func (c *client) say(what string) { fmt.Fprintln(c.out, what) }

// settle waits until a quorum of servers votes. Whoever waits for the answer knows how long that may take.
func (c *client) settle() error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for ; ; <-look.C {
		votes := 0
		for _, n := range c.quorum.Nodes(context.Background()) {
			if n.Votes {
				votes++
			}
		}
		if votes > len(c.URLs)/2 {
			return c.journal.Append(journal.Record{Kind: journal.Votes, At: journal.Now()})
		}
	}
}

// probe acquires and releases keys, one after the other. A failure is in the journal.
func (c *client) probe(names []string) error {
	for _, key := range c.Keys {
		for _, name := range names {
			if key.Name != name {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), key.TTL+ProbeGrace)
			h, err := c.acquire(ctx, key, "probe")
			if h != nil {
				err = h.release(ctx)
			}
			cancel()
			if err != nil {
				return err
			}
		}
	}
	return nil
}
