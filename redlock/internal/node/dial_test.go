package node

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A node that stops waits for the connections that are on their way, and nobody makes another
// behind its back: what was not waited for would be left over.
func TestNoConnectionOnceTheNodeStops(t *testing.T) {
	n := New(config(newServer("a")))
	n.dials.await()
	for range 2 {
		conn, err := n.subscriptions.dedicate(t.Context(), nil)
		require.ErrorIs(t, err, ErrClosed)
		require.Nil(t, conn)
	}
}

// The race detector has an eye on this: who listens dials while the node stops.
func TestDialsWhileTheNodeStops(t *testing.T) {
	for range 1000 {
		n := New(config(newServer("a")))
		var others sync.WaitGroup
		others.Go(func() { n.dials.start(func() {}) })
		n.dials.await()
		others.Wait()
	}
}
