package wire

import (
	"fmt"
	"strconv"
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

// An attempt that is rolled back keeps its place in the queue, by itself and among others. A lease
// that is released has none.
func TestRollbackKeepsThePlace(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	release := func(key string, how Call) *Call {
		require.NoError(t, n.Do(t, "SET", key, "1 o", "PX", "60000").Error())
		require.NoError(t, n.Do(t, "ZADD", key+":wait", "1", pairMembers[0]).Error())
		how.Op, how.Keys, how.Lock, how.Member = Release, &Keys{Lock: key, Fences: "fences"}, "1 o", pairMembers[0]
		require.NoError(t, n.Do(t, "HSET", "fences", "queues", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10)).Error())
		return &how
	}
	for left, how := range []Call{{Keep: "0", Turn: "1000", Channel: "call:"}, {Keep: "0", Stays: true}} { // released, and rolled back
		answers := ask(t, n.Client(), nil, release("{a}", how))
		for _, a := range append(answers, ask(t, n.Client(), nil, release("{b}", how), release("{c}", how))...) {
			require.NoError(t, a.Err)
			require.Equal(t, OK, a.Verdict)
		}
		for _, key := range []string{"{a}", "{b}", "{c}"} {
			require.EqualValues(t, left, number(t, n, "ZCARD", key+":wait"), key)
			require.Zero(t, number(t, n, "EXISTS", key), key)
		}
	}
}

// Texts that are longer than any that this library writes are told by their beginning, or not at
// all: an answer has its bounds.
func TestLongTextsAreToldBriefly(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	long := strings.Repeat("x", 2_000_000)
	set := func(words ...string) { require.NoError(t, n.Do(t, words...).Error()) }
	acquire := func(k *Keys) *Call {
		return &Call{Op: Acquire, Keys: k, Lock: "1 me", TTL: "60000", Hint: "1", Skew: "2000000", Member: pairMembers[0], QueueLife: "180000"}
	}
	held, reserved := NewKeys("p", "held"), NewKeys("p", "reserved")
	set("SET", held.Lock, long)
	set("HSET", held.Fences, "queues", fmt.Sprint(time.Now().Add(time.Minute).UnixMilli()))
	for _, packet := range [][]*Call{{acquire(&held)}, {acquire(&reserved)}, {acquire(&held), acquire(&reserved)}} {
		set("DEL", reserved.Wait()) // one that has been called does not wait
		set("ZADD", reserved.Wait(), fmt.Sprint(-time.Now().Add(900*time.Millisecond).UnixMilli()), "1 "+long)
		for i, a := range ask(t, n.Client(), vouched, packet...) {
			require.NoError(t, a.Err)
			require.Equal(t, Refused, a.Verdict, packet[i].Keys.Name)
			require.Len(t, a.More().Owner, 4096)
		}
	}
	seen := ask(t, n.Client(), vouched, &Call{Op: Observe, Keys: &held})[0]
	require.NoError(t, seen.Err)
	require.Len(t, seen.More().Owner, 4096)
}

// The hash of the counters expires also where nobody was granted a key, and one waited.
func TestCountersOfAWaiterExpire(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	k := NewKeys("p", "key")
	for _, packet := range []int{1, 2} {
		require.NoError(t, n.Do(t, "FLUSHALL").Error())
		var calls []*Call
		for i := range packet {
			other := NewKeys("p", fmt.Sprint("key", i))
			require.NoError(t, n.Do(t, "SET", other.Lock, "somebody else", "PX", "60000").Error())
			calls = append(calls, &Call{Op: Acquire, Keys: &other, Lock: "1 me", TTL: "60000", Hint: "1", Skew: "2000000", Member: pairMembers[0], QueueLife: "180000"})
		}
		for _, a := range ask(t, n.Client(), vouched, calls...) {
			require.NoError(t, a.Err)
			require.Equal(t, Refused, a.Verdict)
		}
		require.InDelta(t, (26 * time.Hour).Milliseconds(), number(t, n, "PTTL", k.Fences), float64(time.Minute.Milliseconds()))
	}
	join := &Call{Op: Join, Keys: &k, Member: pairMembers[0], QueueLife: "180000"}
	require.NoError(t, n.Do(t, "FLUSHALL").Error())
	require.NoError(t, ask(t, n.Client(), nil, join)[0].Err)
	require.Positive(t, number(t, n, "PTTL", k.Fences))
}
