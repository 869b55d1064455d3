package redlocktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onBoth runs a test on a TCP fleet, and on a pipe fleet in a bubble.
func onBoth(t *testing.T, n int, test func(t *testing.T, f *redlocktest.Fleet)) {
	t.Helper()
	t.Run("tcp", func(t *testing.T) { test(t, redlocktest.Start(t, n)) })
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, redlocktest.StartPipes(t, n)) })
	})
}

// onOne is onBoth with one node, and a client of it.
func onOne(t *testing.T, test func(*testing.T, *redlocktest.Node, valkey.Client)) {
	t.Helper()
	onBoth(t, 1, func(t *testing.T, f *redlocktest.Fleet) { test(t, f.Node(0), open(t, f, f.Node(0))) })
}

// inBubble is onOne in a bubble alone.
func inBubble(t *testing.T, test func(*testing.T, *redlocktest.Node, valkey.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := redlocktest.StartPipes(t, 1)
		test(t, f.Node(0), open(t, f, f.Node(0)))
	})
}

// open returns a client that tries everything once, as redlock's does.
func open(t *testing.T, f *redlocktest.Fleet, n *redlocktest.Node) valkey.Client {
	t.Helper()
	o := valkey.MustParseURL(n.URL())
	o.ForceSingleClient = true
	o.DisableRetry = true
	o.PipelineMultiplex = -1
	o.Dialer.KeepAlive = -1 // no PING of its own
	o.ConnWriteTimeout = 10 * time.Second
	f.ClientOption(n.URL(), &o)
	c, err := valkey.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func do(ctx context.Context, c valkey.Client, args ...string) valkey.ValkeyResult {
	return c.Do(ctx, c.B().Arbitrary(args...).Build())
}

func mustDo(t *testing.T, c valkey.Client, args ...string) valkey.ValkeyMessage {
	t.Helper()
	m, err := do(t.Context(), c, args...).ToMessage()
	require.NoError(t, err, "%q", args)
	return m
}

// reconnect waits until the client has noticed that its connection is gone and
// made a new one.
func reconnect(t *testing.T, c valkey.Client) {
	t.Helper()
	require.Eventually(t, func() bool { return do(t.Context(), c, "PING").Error() == nil }, 10*time.Second, time.Millisecond)
}

// timeOut sends a command to a frozen node and sees it time out.
func timeOut(t *testing.T, c valkey.Client, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, do(ctx, c, args...).Error(), context.DeadlineExceeded)
}

// wire encodes a command for a raw connection.
func wire(args ...string) []byte { return []byte(proto.Strings(args...)) }

func mustString(t *testing.T, m valkey.ValkeyMessage) string {
	t.Helper()
	s, err := m.ToString()
	require.NoError(t, err)
	return s
}
