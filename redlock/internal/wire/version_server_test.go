package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// One that gives up has the next called, also while a waiter of another version is the first, with
// a reservation that is too long to be one. While it is that one's turn, nobody is called.
func TestLeaveBesideAnotherVersion(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	conn, cancel := n.Client().Dedicate()
	defer cancel()
	heard := make(chan string, 10)
	conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(m valkey.PubSubMessage) { heard <- m.Message }})
	process := strings.Repeat("a", randomLength)
	require.NoError(t, conn.Do(t.Context(), conn.B().Subscribe().Channel("call:"+process).Build()).Error())
	for _, test := range []struct {
		score  string
		called bool
	}{
		{"-inf", true},
		{"-9999999999999", true},
		{"1", true},
		{"turn", false},
		{"-1", true}, // its turn is over
	} {
		k := &Keys{Lock: "{" + test.score + "}"}
		if test.score == "turn" {
			const reserve = "local t = redis.call('TIME') return redis.call('ZADD', KEYS[1], string.format('-%.0f', t[1] * 1000 + t[2] / 1000 + 900), ARGV[1])"
			require.NoError(t, n.Do(t, "EVAL", reserve, "1", k.Wait(), "2 somebody").Error())
		} else {
			require.NoError(t, n.Do(t, "ZADD", k.Wait(), test.score, "2 somebody").Error())
		}
		gone := NewMember(2, strings.Repeat("b", randomLength), "gone")
		require.NoError(t, n.Do(t, "ZADD", k.Wait(), "2", gone, "3", NewMember(3, process, "next")).Error())
		require.NoError(t, ask(t, n.Client(), nil, &Call{Op: Leave, Keys: k, Member: gone, Turn: "1000", Channel: "call:"})[0].Err)
		require.NoError(t, n.Do(t, "PUBLISH", "call:"+process, "the end").Error())
		said := <-heard
		if test.called {
			m, ok := ParseMessage(said)
			require.True(t, ok, "%s: %q", test.score, said)
			require.Equal(t, Message{0, 3, gone}, m, test.score)
			said = <-heard
		}
		require.Equal(t, "the end", said, test.score)
		members, err := n.Do(t, "ZRANGE", k.Wait(), "0", "-1").AsStrSlice()
		require.NoError(t, err)
		require.Len(t, members, map[bool]int{true: 1, false: 2}[test.score == "-1"], test.score)
	}
	require.Empty(t, heard)
}
