package redlock_test

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// TestFormats pins what is written to servers. Processes of two versions share servers as long as
// both write the same: a change here has to be in the changelog, and one of members or of messages
// needs another version of it (memberVersion, messageVersion, and lib/version.lua of wire).
func TestFormats(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	holder := s.gated(redlock.WithTTL(longTTL), redlock.WithIdentity("the holder"))
	waiter := s.gated(redlock.WithTTL(longTTL), redlock.WithIdentity("the waiter"))
	held := s.hold(holder, "key")
	granted := s.wait(waiter, "key")
	for _, n := range s.Nodes() {
		require.Eventually(t, func() bool { return len(n.Keys(t)) == 3 }, longTTL, pollTick)
		require.Equal(t, []string{"tenure:fences", "tenure:{key}", "tenure:{key}:wait"}, n.Keys(t))
		text := func(want string, command ...string) {
			require.Eventually(t, func() bool {
				got, err := n.Do(t, command...).ToString()
				return err == nil && regexp.MustCompile(want).MatchString(got)
			}, longTTL, pollTick, "%v is not %s", command, want)
		}
		text(`^[1-9][0-9]{15} the holder/[A-Za-z0-9_-]{22}$`, "GET", "tenure:{key}")
		text(`^[1-9][0-9]{15}$`, "HGET", "tenure:fences", wire.NewKeys("tenure", "key").Slot)
		list := []string{"list", "true", "10s", "1ms"}
		for _, n := range s.Nodes() {
			list = append(list, url.QueryEscape(n.Addr()))
		}
		slices.Sort(list[4:])
		text(`^[0-9]{13} [0-9]+ the[+](holder|waiter)$`, "HGET", "tenure:roster", strings.Join(list, " "))
		text(`^[0-9]{13} [0-9]+ the[+](holder|waiter) 127.0.0.1%3A[0-9]+$`, "HGET", "tenure:roster", "at "+url.QueryEscape(n.Addr())+" "+runIDOf(t, n))
		members, err := n.Do(t, "ZRANGE", "tenure:{key}:wait", "0", "-1").AsStrSlice()
		require.NoError(t, err)
		require.Len(t, members, 1)
		require.Regexp(t, `^1 [0-9]{16} [A-Za-z0-9_-]{22} the waiter$`, members[0])
		require.Eventually(t, func() bool {
			channels, err := n.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
			return err == nil && len(channels) == 1 && regexp.MustCompile(`^tenure:call:[A-Za-z0-9_-]{22}$`).MatchString(channels[0])
		}, longTTL, pollTick)
	}
	n := s.Node(0)
	channels, err := n.Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
	require.NoError(t, err)
	heard := make(chan string, 1)
	listener, stop := n.Client().Dedicate()
	defer stop()
	ended := listener.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(m valkey.PubSubMessage) { heard <- m.Message }})
	require.NoError(t, listener.Do(t.Context(), listener.B().Subscribe().Channel(channels[0]).Build()).Error())
	require.NoError(t, held.Release(t.Context()))
	select {
	case message := <-heard:
		require.Regexp(t, `^1 0 [0-9]{16} [1-9][0-9]{15} the holder/[A-Za-z0-9_-]{22}$`, message)
	case err := <-ended:
		require.NoError(t, err, "the listener's connection has ended")
	}
	require.NoError(t, receive(t, granted, longTTL, "not called").err)
}

// runIDOf is that of a server's process.
func runIDOf(t *testing.T, n *valkeytest.Node) string {
	t.Helper()
	text, err := n.Do(t, "INFO", "server").ToString()
	require.NoError(t, err)
	info, err := wire.ParseInfo(text)
	require.NoError(t, err)
	return info.RunID
}
