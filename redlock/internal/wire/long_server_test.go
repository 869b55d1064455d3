package wire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

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
