package replicas

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// NodesVariable names the servers to use instead of nodes inside the process.
const NodesVariable = "TENURE_NODES"

const inProcess = 5

// NodesFlag adds the flag -nodes, which wins over the environment.
func NodesFlag(flags *flag.FlagSet, urls *[]string, fromEnvironment string) {
	*urls = split(fromEnvironment)
	// A flag of a function has no default, which would be printed with the usage, with its
	// passwords.
	flags.Func("nodes", "`URLs` of real servers, separated by commas; "+
		"default: nodes inside the process (environment: "+NodesVariable+")", func(text string) error {
		*urls = split(text)
		return nil
	})
}

func split(text string) (urls []string) {
	for u := range strings.SplitSeq(text, ",") {
		if u = strings.TrimSpace(u); u != "" {
			urls = append(urls, u)
		}
	}
	return urls
}

// Nodes are those on which the replicas hold their leases.
type Nodes struct {
	URLs  []string
	Fleet *redlocktest.Fleet // nil for real servers
}

// OpenNodes starts nodes inside this process, unless there are URLs of servers. Those need not be
// there yet.
func OpenNodes(urls []string) (*Nodes, error) {
	if len(urls) > 0 {
		return &Nodes{URLs: urls}, nil
	}
	fleet, err := redlocktest.New(inProcess)
	if err != nil {
		return nil, fmt.Errorf("cannot start nodes: %w", err)
	}
	return &Nodes{URLs: fleet.URLs(), Fleet: fleet}, nil
}

const (
	reachable = 5 * time.Second        // within which a quorum of servers has to answer
	asking    = 100 * time.Millisecond // how often they are asked
)

// AwaitVotes returns when a quorum of the nodes votes. Servers that were started a moment ago do
// not vote yet. It fails if no quorum can be reached.
func (n *Nodes) AwaitVotes(ctx context.Context, opts ...redlock.Option) error {
	q, err := redlock.Open(n.URLs, append(opts, redlock.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		return fmt.Errorf("-nodes: %w", err)
	}
	defer q.Close()
	told, limit := false, time.Now().Add(reachable)
	for {
		votes, waiting, until := 0, 0, time.Time{}
		var wrong []error
		for _, node := range q.Nodes(ctx) {
			switch {
			case node.Votes:
				votes++
			case !node.QuarantinedUntil.IsZero():
				waiting++
				if node.QuarantinedUntil.After(until) {
					until = node.QuarantinedUntil
				}
			default:
				wrong = append(wrong, node.Err)
			}
		}
		quorum := len(n.URLs)/2 + 1
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case votes >= quorum:
			return nil
		case votes+waiting >= quorum:
			if !told {
				Say("waits until %s: the servers were started a moment ago, and vote when every lease that they "+
					"may have forgotten has expired", until.Format(time.TimeOnly))
			}
			told, limit = true, time.Now().Add(reachable)
		case time.Now().After(limit):
			return fmt.Errorf("%d of %d servers can be used, too few for a quorum: start them or correct -nodes\n%w",
				votes+waiting, len(n.URLs), errors.Join(wrong...))
		}
		select {
		case <-time.After(asking):
		case <-ctx.Done():
		}
	}
}

// Close ends the nodes inside this process.
func (n *Nodes) Close() {
	if n.Fleet != nil {
		_ = n.Fleet.Close()
	}
}

// String is the nodes' hosts, without what their URLs may contain besides.
func (n *Nodes) String() string {
	hosts := make([]string, len(n.URLs))
	for i := range n.URLs {
		hosts[i] = n.Host(i)
	}
	return strings.Join(hosts, ", ")
}

// Host is the host in a node's URL, or the node's number where the URL has none.
func (n *Nodes) Host(i int) string {
	if u, err := url.Parse(n.URLs[i]); err == nil && u.Host != "" {
		return u.Host
	}
	return fmt.Sprintf("node %d", i+1)
}
