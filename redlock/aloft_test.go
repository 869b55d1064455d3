package redlock

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// closable is a client that can be closed, and nothing else.
type closable struct {
	valkey.Client
	closed bool
}

func (c *closable) Close() { c.closed = true }

// valkey-go leaves a connection open that is made while its client is being closed. A flight may be
// about to make one, also when it is back, because its requests are sent once more.
func TestClientIsNotClosedUnderItsFlights(t *testing.T) {
	expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	server := startReplier(t).client
	n, client := testNode(), &closable{}
	n.gate = newGate(n)
	load := func() *flight {
		f := &flight{client: client, done: make(chan struct{}), sizes: []int{1}, echoes: []int64{0}}
		f.limit.start(time.Hour)
		f.batch = []*request{{call: &wire.Call{Op: wire.Extend, Keys: &wire.Keys{Name: "k"}}, attempt: &attempt{keys: &wire.Keys{Name: "k"}}, round: newRound(OpExtend, 1, 1)}}
		f.results = []valkey.ValkeyResult{server.Do(expired, server.B().Ping().Build())}
		return f
	}
	n.client.Store(new(valkey.Client(client)))
	n.aloft = []*flight{load(), load(), load()}
	for len(n.aloft) > 1 {
		n.land(n.aloft[0])
		require.Nil(t, n.client.Load(), "nothing else uses it")
		require.Equal(t, valkey.Client(client), n.parting, "%d flights have it", len(n.aloft))
	}
	n.land(n.aloft[0])
	require.Nil(t, n.parting)
	n.awaitDials()
	require.True(t, client.closed)
}

// What the kernel says of a connection that did not answer its probes is a timeout, by its own
// name. It is no server that is slow: what can be sent on another connection is.
func TestConnectionThatTheKernelFoundDeadIsBroken(t *testing.T) {
	dead := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	require.True(t, dead.Timeout())
	require.False(t, isTimeout(dead))
	require.True(t, isBroken(dead))
	require.Equal(t, "connection", testNode().failure(OpAcquire, dead).ErrorType())
	slow := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	require.True(t, isTimeout(slow))
	require.Equal(t, "timeout", testNode().failure(OpAcquire, slow).ErrorType())
}
