package wire

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// pairCase is what there is of a key on a server, and what is asked of it.
type pairCase struct {
	lock, fence, queue string // kinds
	call               *Call
}

// members of a queue, in their order.
var pairMembers = []string{
	NewMember(1, "aaaaaaaaaaaaaaaaaaaaaa", "a"), NewMember(2, "bbbbbbbbbbbbbbbbbbbbbb", "b"),
	NewMember(3, "cccccccccccccccccccccc", "c"), NewMember(4, "dddddddddddddddddddddd", "d"),
}

// drawPair makes one up. In a quiet packet nobody queues, and most are as most are.
func drawPair(random *rand.Rand, key string, quiet bool) *pairCase {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	c := &pairCase{
		lock:  pick("none", "none", "own", "others", "reserved", "endless", "long", "list"),
		fence: pick("none", "small", "large", "recent", "recent", "recent", "same"),
		queue: pick("none", "none", "waiting", "text"),
	}
	c.call = &Call{Op: Acquire, Keys: &Keys{Name: key, Lock: key, Fences: "fences", Slot: "of " + key}, Lock: "1 owner of " + key, QueueLife: "180000"}
	if quiet {
		c.queue, c.fence = "none", pick(c.fence, "recent")
	}
	if random.IntN(2) == 0 {
		c.call.Op = Release
		if c.lock == "list" {
			c.lock = "others" // for a release of many, what is no text is gone
		}
	}
	return c
}

// prepare makes the key what it is.
func (c *pairCase) prepare(t *testing.T, n *valkeytest.Node, now time.Time) {
	k := c.call.Keys
	do := func(words ...string) { require.NoError(t, n.Do(t, words...).Error()) }
	micros := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).UnixMicro(), 10) }
	switch c.lock {
	case "own":
		do("SET", k.Lock, c.call.Lock, "PX", "40000")
	case "others":
		do("SET", k.Lock, "somebody else", "PX", "40000")
	case "reserved":
		do("SET", k.Lock, reservation+pairMembers[1], "PX", "40000")
	case "endless":
		do("SET", k.Lock, "somebody else")
	case "long":
		do("SET", k.Lock, strings.Repeat("l", 5000), "PX", "40000")
	case "list":
		do("RPUSH", k.Lock, "x")
	}
	switch c.fence {
	case "small":
		do("ZADD", k.Fences, "41", k.Slot)
	case "large":
		do("ZADD", k.Fences, micros(time.Hour), k.Slot)
	case "recent":
		do("ZADD", k.Fences, micros(-time.Second), k.Slot)
	case "same":
		do("ZADD", k.Fences, c.call.proposed(), k.Slot)
	}
	if c.queue == "text" {
		do("SET", k.Lock+":wait", "text")
	} else if c.queue != "none" {
		for i, m := range pairMembers {
			do("ZADD", k.Lock+":wait", strconv.Itoa(i+1), m)
		}
	}
}

// state is what a server has of the key, with times rounded to what a slow machine keeps apart.
func (c *pairCase) state(t *testing.T, n *valkeytest.Node) string {
	k := c.call.Keys
	var text strings.Builder
	for _, key := range []string{k.Lock, k.Lock + ":wait"} {
		kind, err := n.Do(t, "TYPE", key).ToString()
		require.NoError(t, err)
		left, err := n.Do(t, "PTTL", key).AsInt64()
		require.NoError(t, err)
		fmt.Fprintf(&text, "%s ttl %d: ", kind, (left+10_000)/20_000)
		switch kind {
		case "string":
			value, err := n.Do(t, "GET", key).ToString()
			require.NoError(t, err)
			text.WriteString(value)
		case "zset":
			members, err := n.Do(t, "ZRANGE", key, "0", "-1", "WITHSCORES").AsZScores()
			require.NoError(t, err)
			for _, m := range members {
				fmt.Fprintf(&text, "%s %.0f, ", m.Member, m.Score)
			}
		}
		text.WriteString("; ")
	}
	counter, err := n.Do(t, "ZSCORE", k.Fences, k.Slot).ToString()
	if !valkey.IsValkeyNil(err) {
		require.NoError(t, err)
	}
	text.WriteString(counter)
	return text.String()
}

// told is an answer, with times rounded.
func told(rep Result) string {
	if err := rep.Err; err != nil {
		if server, ok := valkey.IsValkeyErr(err); ok {
			code, _, _ := strings.Cut(server.Error(), " ")
			return "error " + code
		}
		return "error " + err.Error()
	}
	return fmt.Sprintf("%d token %d owner %q ttl %d rank %d server %t", rep.Verdict, rep.Token, rep.More().Owner, (rep.More().PTTL+2*time.Second)/(4*time.Second), rep.More().Rank, rep.Server != 0)
}

// A server that is full grants nothing, also where it lets a key go in the same packet.
func TestPairsOnAFullServer(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	hint := strconv.FormatInt(time.Now().UnixMicro(), 10)
	own := sharing(Release, "{own}", "1", hint)
	require.NoError(t, n.Do(t, "SET", "{held}", "somebody else", "PX", "60000").Error())
	require.NoError(t, n.Do(t, "SET", "{own}", own.Lock, "PX", "60000").Error())
	require.NoError(t, n.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	answers := ask(t, n.Client(), vouched, sharing(Acquire, "{held}", "2", hint), sharing(Acquire, "{a}", "3", hint), own, sharing(Acquire, "{b}", "4", hint))
	require.NoError(t, n.Do(t, "CONFIG", "SET", "maxmemory", "0").Error())
	require.Equal(t, Refused, answers[0].Verdict)
	for _, i := range []int{1, 3} {
		require.ErrorContains(t, answers[i].Err, "OOM")
	}
	require.NoError(t, answers[2].Err)
	require.Equal(t, OK, answers[2].Verdict, "what is held is let go")
	require.Equal(t, []string{"{held}"}, n.Keys(t))
}

// Many leases are extended where they are there, whoever else has keys among them. One that is
// extended alone puts back what is gone, whatever is in the place of the counters.
func TestManyExtensions(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	const token, later = "1000000000000001", "1000000000000002"
	var keys, locks []string
	for lock, text := range map[string]string{"own": token + " me", "late": later + " me", "other": token + " another", "none": "", "list": ""} {
		key := "{" + lock + "}"
		if text != "" {
			require.NoError(t, n.Do(t, "SET", key, text, "PX", "60000").Error())
		}
		keys, locks = append(keys, key), append(locks, token+" me")
	}
	require.NoError(t, n.Do(t, "RPUSH", "{list}", "x").Error())
	require.NoError(t, n.Do(t, "RPUSH", "fences", "x").Error(), "no counters, which is nothing to them")
	digits := ask(t, n.Client(), vouched, NewExtendMany("all", "600000", append(keys, "fences"), locks))[0].More().Each
	require.Len(t, digits, len(keys))
	for i, key := range keys {
		want := map[string]string{"{own}": "1", "{late}": "1", "{other}": "0"}[key]
		require.Equal(t, cmp.Or(want, "3"), digits[i:i+1], key)
		require.Equal(t, want == "1", number(t, n, "PTTL", key) > 60_000, key)
		if want == "1" {
			require.Equal(t, locks[i], textOf(t, n, "GET", key), "with the token of the lease")
		}
	}
	for lock, want := range map[string]Extended{"{list}": ByOther, "{gone}": Refilled} {
		alone := &Call{Op: Extend, Keys: &Keys{Lock: lock, Fences: "fences", Slot: "1"}, Lock: token + " me", TTL: "60000", Refill: true}
		require.Equal(t, want, ask(t, n.Client(), vouched, alone)[0].Extended)
		require.NoError(t, n.Do(t, "DEL", "fences").Error())
	}
	require.Equal(t, "list", textOf(t, n, "TYPE", "{list}"))
}

// ask has a server carry out calls in one command, and those that it leaves alone.
func ask(t testing.TB, client valkey.Client, target *Target, calls ...*Call) []Result {
	results := Decode(calls, do(t, client, target, calls...), nil)
	for i := range results {
		if results[i].Alone {
			results[i] = Decode(calls[i:i+1], do(t, client, target, calls[i]), nil)[0]
		}
	}
	return results
}

// vouched is any process that was.
var vouched = &Target{Vouched: true}

// do is the answer of a server that gets the text of the script.
func do(t testing.TB, client valkey.Client, target *Target, calls ...*Call) valkey.ValkeyResult {
	whole := Target{Knows: make(map[*Script]bool)}
	if target != nil {
		whole.Process, whole.Vouched = target.Process, target.Vouched
	}
	return client.Do(t.Context(), new(Buffers).Encode(client, calls, &whole))
}
