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

	name := board.journal("kind/long")
	entry := Entry{Journal: "kind/long", At: 1, Text: strings.Repeat("t", MaxEntry), Class: strings.Repeat("c", maxClass), Count: 1 << 52, Most: 10, Keep: time.Minute}
	put(t, n, nil, entry)
	set("LPUSH", name, "1 2 1 - "+long)
	require.Equal(t, []string{entry.Text}, texts(entriesOf(t, n, "kind/long", 10)))

	ids, expiries, hash := cardKeys("kind")[0], cardKeys("kind")[1], cardKeys("kind")[2]
	first, last := Card{Kind: "kind", ID: "a", Text: strings.Repeat("t", MaxCard), Lifetime: time.Minute}, Card{Kind: "kind", ID: strings.Repeat("z", MaxCardID), Text: "z", Lifetime: time.Minute}
	put(t, n, []Card{first, last})
	for _, id := range []string{"b" + long, "c" + long, "d"} {
		set("ZADD", ids, "0", id)
		set("ZADD", expiries, "9e15", id)
		set("HSET", hash, id, "1 1 "+long)
	}
	all := cardsOf(t, n, "kind", "", 2)
	require.Len(t, all, 2)
	require.Equal(t, first.Text, all[0].Text)
	require.Equal(t, "d", all[1].ID)
	require.Negative(t, all[1].Lifetime, "it is no card")
	all = cardsOf(t, n, "kind", "d", 2)
	require.Len(t, all, 1)
	require.Equal(t, last.Text, all[0].Text)

	// What is read of them is not what is sent.
	for _, call := range []*Call{{Op: Cards, Notice: board.ReadCards("kind", "", 10)}, {Op: Journal, Notice: board.ReadJournal("kind/long", 10)}} {
		answer, err := do(t, n.Client(), vouched, call).ToMessage()
		require.NoError(t, err)
		require.Less(t, len(answer.String()), 50_000, call.Op)
	}
}

func texts(entries []Entry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Text)
	}
	return all
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
