package tenureotel_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// In a bubble time passes only while everything waits, so durations here are exact. The nodes are
// in-process ones behind the real client.

const (
	ttl      = 4 * time.Second
	validity = ttl - ttl/100 - 2*time.Millisecond
)

// silent is a logger that says nothing.
var silent = slog.New(slog.DiscardHandler)

// bubble runs a test with five nodes.
func bubble(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, redlocktest.StartPipes(t, 5)) })
}

// three is bubble with three nodes, for tests of which they are no matter.
func three(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, redlocktest.StartPipes(t, 3)) })
}

// open makes a Quorum on the fleet that is closed with the test, connected to all its nodes.
func open(tb testing.TB, fleet *redlocktest.Fleet, opts ...redlock.Option) *redlock.Quorum {
	tb.Helper()
	q, err := redlock.Open(fleet.URLs(), append([]redlock.Option{
		redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(silent),
	}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, q.Close()) })
	q.Nodes(tb.Context())
	return q
}

func acquire(tb testing.TB, q *redlock.Quorum, key string, opts ...redlock.LeaseOption) *redlock.Lease {
	tb.Helper()
	l, err := q.TryAcquire(tb.Context(), key, opts...)
	require.NoError(tb, err)
	return l
}

func freeze(tb testing.TB, fleet *redlocktest.Fleet, nodes ...int) {
	tb.Helper()
	for _, i := range nodes {
		require.NoError(tb, fleet.Node(i).Freeze())
	}
}

func thaw(tb testing.TB, fleet *redlocktest.Fleet, nodes ...int) {
	tb.Helper()
	for _, i := range nodes {
		require.NoError(tb, fleet.Node(i).Thaw())
	}
}

// set writes a key on one node, as somebody else's client would.
func set(tb testing.TB, n *redlocktest.Node, key, value string) {
	tb.Helper()
	command(tb, n, "SET", key, value)
}

// command has a node carry one out, as somebody else's client would.
func command(tb testing.TB, n *redlocktest.Node, words ...string) {
	tb.Helper()
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{"node"}, ForceSingleClient: true, DisableCache: true,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return n.Dial(ctx)
		},
	})
	require.NoError(tb, err)
	defer client.Close()
	require.NoError(tb, client.Do(tb.Context(), client.B().Arbitrary(words...).Build()).Error())
}

// settle waits until nothing goes on any more.
func settle() { synctest.Wait() }

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
