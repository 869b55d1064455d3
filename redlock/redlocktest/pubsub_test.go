package redlocktest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestPublishDoesNotWaitForSubscriber(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		n := f.Node(0)
		silent, err := n.Dial(t.Context())
		require.NoError(t, err)
		defer silent.Close()
		_, err = silent.Write(wire("SUBSCRIBE", "news"))
		require.NoError(t, err)

		c := open(t, f, n)
		require.Eventually(t, func() bool { return subscribers(t, c, "news") == 1 }, 10*time.Second, time.Millisecond)
		message := strings.Repeat("x", 1<<20)
		for range 8 {
			mustDo(t, c, "PUBLISH", "news", message)
		}
	})
}

func TestSubscription(t *testing.T) {
	onBoth(t, 1, func(t *testing.T, f *redlocktest.Fleet) {
		c := open(t, f, f.Node(0))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := make(chan string, 1)
		ended := make(chan error, 1)
		go func() {
			ended <- c.Receive(ctx, c.B().Subscribe().Channel("news").Build(), func(m valkey.PubSubMessage) { got <- m.Message })
		}()
		publisher := open(t, f, f.Node(0))
		require.Eventually(t, func() bool { return subscribers(t, publisher, "news") == 1 }, 10*time.Second, time.Millisecond)
		mustDo(t, publisher, "EVAL", "return redis.call('PUBLISH', KEYS[1], 'hello')", "1", "news")
		require.Equal(t, "hello", <-got)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func subscribers(t *testing.T, c valkey.Client, channel string) int64 {
	t.Helper()
	counts, err := do(t.Context(), c, "PUBSUB", "NUMSUB", channel).ToArray()
	require.NoError(t, err)
	require.Len(t, counts, 2)
	n, err := counts[1].AsInt64()
	require.NoError(t, err)
	return n
}
