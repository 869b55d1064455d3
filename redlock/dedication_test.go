package redlock

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A node that stops waits for the connections that are on their way, and nobody makes another
// behind its back: what was not waited for would be left over.
func TestNoDedicationOnceTheNodeStops(t *testing.T) {
	n := testNode()
	n.hearing.dials = &n.dials
	n.awaitDials()
	for range 2 {
		conn, err := n.hearing.dedicate(t.Context(), nil)
		require.ErrorIs(t, err, ErrClosed)
		require.Nil(t, conn)
	}
}

// The race detector has an eye on this: listeners dial while their node stops.
func TestDedicationsWhileTheNodeStops(t *testing.T) {
	for range 1000 {
		n := testNode()
		var listeners sync.WaitGroup
		listeners.Go(func() { n.dials.start(func() {}) })
		n.awaitDials()
		listeners.Wait()
	}
}
