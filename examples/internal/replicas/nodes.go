package replicas

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// nodesVariable is the environment variable with the URLs of real servers, to use instead of nodes
// inside the process. Unlike a flag, it keeps passwords out of the list of processes.
const nodesVariable = "TENURE_NODES"

// Nodes has the nodes on which the replicas hold their leases.
type Nodes struct {
	URLs  []string
	Fleet *redlocktest.Fleet // nil for real servers
}

// NodesFlag adds the flag -nodes, which goes before the environment. The flag has no default,
// because the help text would print it with its passwords.
func NodesFlag() *Nodes {
	n := &Nodes{URLs: split(os.Getenv(nodesVariable))}
	flag.Func("nodes", "`URLs` of real servers, separated by commas; default: nodes inside the process (environment: "+nodesVariable+")",
		func(text string) error { n.URLs = split(text); return nil })
	return n
}

func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// Open starts five nodes inside this process if there are no URLs of servers. With URLs, it fails
// if no quorum of the servers can be reached within 5 s. A server that was started a moment ago may
// not vote yet, and still counts.
func (n *Nodes) Open(ctx context.Context, opts ...redlock.Option) (err error) {
	if len(n.URLs) == 0 {
		if n.Fleet, err = redlocktest.New(5); err == nil {
			n.URLs = n.Fleet.URLs()
		}
		return err
	}
	q, err := redlock.Open(n.URLs, append(opts, redlock.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		return err
	}
	defer q.Close()
	for limit := time.Now().Add(5 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		usable, wrong := 0, []error(nil)
		for _, node := range q.Nodes(ctx) {
			if node.Votes || !node.QuarantinedUntil.IsZero() {
				usable++
			} else {
				wrong = append(wrong, node.Err)
			}
		}
		switch {
		case usable > len(n.URLs)/2:
			return nil
		case ctx.Err() != nil || time.Now().After(limit):
			return fmt.Errorf("%d of %d servers can be used, too few for a quorum: start them or correct -nodes\n%w",
				usable, len(n.URLs), errors.Join(wrong...))
		}
	}
}

// Close stops the nodes inside this process.
func (n *Nodes) Close() {
	if n.Fleet != nil {
		_ = n.Fleet.Close()
	}
}
