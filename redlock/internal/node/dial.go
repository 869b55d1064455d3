package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"
)

// dials are the connections of a node that are on their way, to the server or to their end. They
// are safe for concurrent use.
type dials struct {
	mu   sync.Mutex
	over bool           // guarded by mu; the node stops
	way  sync.WaitGroup // added to with mu held, until it is over
}

// start makes one, unless the node stops.
func (d *dials) start(dial func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over {
		d.way.Go(dial)
	}
	return !d.over
}

// end has no other one started.
func (d *dials) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
}

// dialGrace is how long a node that stops waits for connections that are on their way. Those of
// Open's clients end with the client. One that is caught in a caller's pool ends when that has a
// place or its client is closed.
const dialGrace = time.Second

// await waits for connections that are on their way, a while. No more come after that.
func (d *dials) await() {
	d.end()
	done := make(chan struct{})
	go func() {
		d.way.Wait()
		close(done)
	}()
	timer := time.NewTimer(dialGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// dialer takes connections of their own from a node's client for one purpose, one after the other.
// valkey-go makes them without a context, and waits without end for a place in its pool
// (ClientOption.BlockingPoolSize), so one that does not come is left behind and given back when it
// comes. Until then no other is asked for: else a pool without a place left would collect a
// goroutine with every try.
type dialer struct {
	dials *dials
	busy  atomic.Bool // one is on its way
}

// errPoolExhausted is why a node cannot be looked at although it answers.
var errPoolExhausted = errors.New("the client gave no dedicated connection: its pool may be exhausted, " +
	"raise ClientOption.BlockingPoolSize (a Quorum uses two places of each client)")

// dedicate returns a connection, which the caller closes; ErrClosed once the node stops.
func (d *dialer) dedicate(ctx context.Context, client valkey.Client) (valkey.DedicatedClient, error) {
	if !d.busy.CompareAndSwap(false, true) {
		return nil, errPoolExhausted
	}
	dialled := make(chan valkey.DedicatedClient)
	started := d.dials.start(func() {
		defer d.busy.Store(false)
		conn, _ := client.Dedicate()
		select {
		case dialled <- conn:
		case <-ctx.Done():
			conn.Close()
		}
	})
	if !started {
		d.busy.Store(false)
		return nil, ErrClosed
	}
	select {
	case conn := <-dialled:
		return conn, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
