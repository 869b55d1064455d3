package redlock

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
)

// closable is a client that can be closed, and nothing else.
type closable struct {
	valkey.Client
	closed bool
}

func (c *closable) Close() { c.closed = true }

// valkey-go leaves a connection open that is made while its client is being closed. A flight may be about to make one.
func TestClientIsNotClosedUnderItsFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, client := testNode(), &closable{}
		flights := []*flight{{done: make(chan struct{})}, {done: make(chan struct{})}}
		n.closeAfter(client, flights)
		for _, f := range flights {
			synctest.Wait()
			require.False(t, client.closed)
			close(f.done)
		}
		n.awaitDials()
		require.True(t, client.closed)
	})
}
