//go:build long

package redlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A release returns at the node timeout; what has not been sent by then is not dropped by Close.
func TestCloseSendsWhatWasReleased(t *testing.T) {
	t.Parallel()
	s := startServers(t, 5)
	q := s.open(redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(time.Second)) // what was released outlives the test
	const heldTTL = 4 * serverTTL                                                   // the releases take a node timeout each
	held := s.hold(q, "held", redlock.WithTTL(heldTTL))
	leases := make([]*redlock.Lease, 10)
	for i := range leases {
		leases[i] = s.hold(q, fmt.Sprint("key", i))
	}
	s.freeze(s.all()...)
	var work sync.WaitGroup
	for i, l := range leases {
		work.Go(func() { assert.ErrorIs(t, l.Release(t.Context()), redlock.ErrTimeout) })
		if i == 0 {
			s.requireUnread(s.all()...) // the others wait behind it
		}
	}
	work.Wait()
	closed := make(chan error, 1)
	go func() { closed <- q.Close() }()
	s.requireLost(held, redlock.LostClosed)
	s.thaw(s.all()...)
	require.NoError(t, receive(t, closed, longTTL/2, "Close hangs"))
	s.requireFree(2*heldTTL, "a release was dropped by Close")
}
