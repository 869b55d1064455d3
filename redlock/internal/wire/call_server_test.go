package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// A release calls the first three waiters, however many dead ones are between them, and looks no
// further than it needs to.
func TestReleaseLooksForOthersToCall(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	for name, test := range map[string]struct {
		queue string // processes, in their order; d is dead, o a member of another version, x of none
		want  string // who is called
		left  string // the queue after that; the first that is called is its first
	}{
		"nobody":                      {"", "", ""},
		"one":                         {"a", "a", "a"},
		"three":                       {"abc", "abc", "abc"},
		"more than are called":        {"abcef", "abc", "abcef"},
		"one that has just given up":  {"aabc", "aab", "aabc"},
		"the dead":                    {"dda", "a", "a"},
		"many dead":                   {strings.Repeat("d", 100) + "a" + strings.Repeat("d", 100) + "bc", "abc", "abc"},
		"the dead in between":         {"adbdcd", "abc", "abcd"},
		"the dead at the chunk's end": {"addb" + strings.Repeat("d", 16) + "c", "abc", "abc"},
		"only the dead":               {strings.Repeat("d", 20), "", ""},
		"another version":             {"oaobocof", "abc", "aoobocof"},
		"another version's crowd":     {strings.Repeat("o", 100) + "ab", "ab", "a" + strings.Repeat("o", 100) + "b"},
		"a crowd in between":          {"a" + strings.Repeat("do", 100) + "b", "ab", "a" + strings.Repeat("o", 100) + "b"},
		"only another version":        {strings.Repeat("o", 20), "", strings.Repeat("o", 20)},
		"no version":                  {"xaoxbxoxc", "abc", "aoboc"},
	} {
		key := fmt.Sprintf("{%s}", name)
		channels := "call:" + name + ":"
		conn, cancel := n.Client().Dedicate()
		heard := make(chan valkey.PubSubMessage, 100)
		conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(m valkey.PubSubMessage) { heard <- m }})
		process := func(p rune) string { return strings.Repeat(string(p), randomLength-1) + string(p) }
		for _, p := range "abcef" {
			require.NoError(t, conn.Do(t.Context(), conn.B().Subscribe().Channel(channels+process(p)).Build()).Error())
		}
		for i, p := range test.queue {
			member := NewMember(uint64(i+1), process(p), "x")
			switch p {
			case 'o':
				member = "2" + member[1:]
			case 'x':
				member = member[len(memberVersion):]
			}
			require.NoError(t, n.Do(t, "ZADD", key+":wait", fmt.Sprint(i+1), member).Error())
		}
		require.NoError(t, n.Do(t, "SET", key, "1 owner").Error())
		require.NoError(t, ask(t, n.Client(), vouched, &Call{
			Op: Release, Keys: &Keys{Lock: key}, Lock: "1 owner", Keep: "0", Turn: "1000", Channel: channels,
		})[0].Err)
		require.NoError(t, n.Do(t, "PUBLISH", channels+process('a'), "the end").Error())
		called := ""
		for m := <-heard; m.Message != "the end"; m = <-heard {
			said, ok := ParseMessage(m.Message)
			require.True(t, ok, "%q", m.Message)
			require.Equal(t, "1 owner", said.Release)
			require.Equal(t, time.Duration(len(called))*time.Second, said.After, name)
			called += m.Channel[len(m.Channel)-1:]
		}
		require.Equal(t, test.want, called, name)
		cancel()

		members, err := n.Do(t, "ZRANGE", key+":wait", "0", "-1").AsStrSlice()
		require.NoError(t, err)
		left := ""
		for _, m := range members {
			left += m[len(m)-len(" x")-1 : len(m)-len(" x")]
		}
		require.Equal(t, test.left, left, name)
	}
}
