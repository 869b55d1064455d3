package redlocktest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"testing"

	"github.com/valkey-io/valkey-go"
)

// Fleet is a number of independent nodes. It is safe for concurrent use.
type Fleet struct {
	nodes []*Node
}

// New starts n nodes on free loopback ports. The caller closes the fleet. In a
// test, [Start] does.
func New(n int) (*Fleet, error) {
	return newFleet(n, func(int) (*Node, error) { return newNode("127.0.0.1:0", false) })
}

// Start starts n nodes on free loopback ports and closes them when the test
// ends. Real connections do not work in a [testing/synctest] bubble; use
// [StartPipes] there.
func Start(tb testing.TB, n int) *Fleet {
	tb.Helper()
	return closedWith(tb, n, New)
}

// StartPipes starts n nodes that need no network and closes them when the test
// ends. Clients reach them through [Node.Dial] only; [Fleet.ClientOption] sets
// that up for valkey-go.
//
// In a [testing/synctest] bubble it must be called inside the bubble, with the bubble's *testing.T.
// Clients have to be closed there too: a bubble waits for every goroutine, and a node cannot end
// the goroutines of its clients.
func StartPipes(tb testing.TB, n int) *Fleet {
	tb.Helper()
	return closedWith(tb, n, NewPipes)
}

// NewPipes starts n nodes that need no network, as [StartPipes] does, for a
// program without one, such as a WebAssembly module in a browser. The caller
// closes the fleet.
func NewPipes(n int) (*Fleet, error) {
	return newFleet(n, func(i int) (*Node, error) {
		return newNode(fmt.Sprintf("node-%d.pipe:6379", i+1), true)
	})
}

func closedWith(tb testing.TB, n int, start func(int) (*Fleet, error)) *Fleet {
	tb.Helper()
	fleet, err := start(n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			tb.Error(err)
		}
	})
	return fleet
}

func newFleet(n int, start func(i int) (*Node, error)) (*Fleet, error) {
	if n < 1 {
		return nil, fmt.Errorf("redlocktest: a fleet of %d nodes: ask for at least one", n)
	}
	f := &Fleet{}
	for i := range n {
		node, err := start(i)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.nodes = append(f.nodes, node)
	}
	return f, nil
}

// Nodes returns the nodes, always in the same order.
func (f *Fleet) Nodes() []*Node { return slices.Clone(f.nodes) }

// Node returns node i, counted from zero. It panics if there is none.
func (f *Fleet) Node(i int) *Node { return f.nodes[i] }

// URLs returns the nodes' URLs, in the order of [Fleet.Nodes].
func (f *Fleet) URLs() []string {
	urls := make([]string, len(f.nodes))
	for i, n := range f.nodes {
		urls[i] = n.URL()
	}
	return urls
}

// ClientOption adjusts the options of a valkey-go client for the node with this URL. It turns off
// client-side caching, which the nodes do not have, and lets clients of a [StartPipes] fleet dial.
// It has the signature of a redlock.WithClientOption hook. Options for any other URL stay as they
// are.
func (f *Fleet) ClientOption(nodeURL string, o *valkey.ClientOption) {
	node := f.find(nodeURL)
	if node == nil {
		return
	}
	o.DisableCache = true
	if node.addr.network == "pipe" {
		// Smaller than the defaults: hours in a bubble make many connections.
		o.RingScaleEachConn = cmp.Or(o.RingScaleEachConn, 6)
		o.ReadBufferEachConn = cmp.Or(o.ReadBufferEachConn, 1<<16)
		o.WriteBufferEachConn = cmp.Or(o.WriteBufferEachConn, 1<<16)
		o.DialCtxFn = func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return node.Dial(ctx)
		}
	}
}

func (f *Fleet) find(nodeURL string) *Node {
	u, err := url.Parse(nodeURL)
	if err != nil {
		return nil
	}
	for _, n := range f.nodes {
		if n.addr.text == u.Host {
			return n
		}
	}
	return nil
}

// Close kills all nodes, frozen ones too, and waits for their goroutines. Their
// data can still be inspected; they cannot be restarted. It always returns nil
// and may be called again.
func (f *Fleet) Close() error {
	for _, n := range f.nodes {
		n.close()
	}
	return nil
}
