package redlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"
)

// dedication takes connections of their own from a node's client for one purpose, one after the other. valkey-go makes
// them without a context, and waits without end for a place in its pool (ClientOption.BlockingPoolSize), so one that
// does not come is left behind and given back when it comes. Until then no other is asked for: else a pool without a
// place left would collect a goroutine with every try.
type dedication struct {
	pending *sync.WaitGroup // of all dedications of the node
	busy    atomic.Bool     // one is on its way
}

// errPoolExhausted is why a node cannot be looked at although it answers.
var errPoolExhausted = errors.New("the client gave no dedicated connection: its pool may be exhausted, " +
	"raise ClientOption.BlockingPoolSize (a Quorum uses two places of each client)")

// dedicate returns a connection, which the caller closes.
func (d *dedication) dedicate(ctx context.Context, client valkey.Client) (valkey.DedicatedClient, error) {
	if !d.busy.CompareAndSwap(false, true) {
		return nil, errPoolExhausted
	}
	dialled := make(chan valkey.DedicatedClient)
	d.pending.Go(func() {
		defer d.busy.Store(false)
		conn, _ := client.Dedicate()
		select {
		case dialled <- conn:
		case <-ctx.Done():
			conn.Close()
		}
	})
	select {
	case conn := <-dialled:
		return conn, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dialGrace is how long a node that stops waits for connections that are on their way. Those of Open's clients end with
// the client. One that is caught in a caller's pool ends when that has a place or its client is closed.
const dialGrace = time.Second

// awaitDials waits for connections that are on their way, a while.
func (n *node) awaitDials() {
	done := make(chan struct{})
	go func() {
		n.dials.Wait()
		close(done)
	}()
	timer := time.NewTimer(dialGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
