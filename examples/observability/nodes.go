package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

const inProcessNodes = 5

// nodes are those that the replicas use.
type nodes struct {
	urls  []string
	fleet *redlocktest.Fleet // nil for real servers
	next  int                // to be restarted
	down  *redlocktest.Node  // killed, and not yet started again
}

// openNodes starts nodes inside this process, unless there are real servers. Those need not be there yet: replicas wait for a quorum.
func openNodes(cfg *config) (*nodes, error) {
	if len(cfg.nodes) > 0 {
		return &nodes{urls: cfg.nodes}, nil
	}
	fleet, err := redlocktest.New(inProcessNodes)
	if err != nil {
		return nil, fmt.Errorf("cannot start nodes: %w", err)
	}
	return &nodes{urls: fleet.URLs(), fleet: fleet}, nil
}

func (n *nodes) close() {
	if n.fleet != nil {
		_ = n.fleet.Close()
	}
}

// kill ends the next node, as a crash would, and returns its name.
func (n *nodes) kill() (string, error) {
	i := n.next
	n.next = (n.next + 1) % len(n.urls)
	n.down = n.fleet.Node(i)
	return host(n.urls[i], i), n.down.Kill()
}

// restart starts the node again that was killed, without what it knew.
func (n *nodes) restart() (string, error) {
	node := n.down
	n.down = nil
	return host(node.URL(), 0), node.Restart(false)
}

// names are the nodes without what their URLs may contain besides.
func (n *nodes) names() string {
	hosts := make([]string, len(n.urls))
	for i, u := range n.urls {
		hosts[i] = host(u, i)
	}
	return strings.Join(hosts, ", ")
}

// host is the host of a node's URL, or its number where the URL has none.
func host(node string, i int) string {
	if u, err := url.Parse(node); err == nil && u.Host != "" {
		return u.Host
	}
	return fmt.Sprintf("node %d", i+1)
}
