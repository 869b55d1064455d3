package wire

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// sharing is a call for a key of the counters "fences".
func sharing(op Op, key, slot, token string) *Call {
	c := &Call{Op: op, Keys: &Keys{Name: key, Lock: key, Fences: "fences", Slot: slot}, Lock: Lock(token, ownerOf(key)), QueueLife: "180000"}
	if op == Release {
		c.Keep, c.Turn, c.Channel = "0", "1000", "call:"
	} else {
		c.TTL = "60000"
	}
	return c
}

func ownerOf(key string) string { return "owner of " + key + "/AAAAAAAAAAAAAAAAAAAAAA" }

func number(t testing.TB, n *valkeytest.Node, words ...string) int64 {
	t.Helper()
	got, err := n.Do(t, words...).AsInt64()
	require.NoError(t, err)
	return got
}

// textOf is what a server has there.
func textOf(t *testing.T, n *valkeytest.Node, command ...string) string {
	t.Helper()
	text, err := n.Do(t, command...).ToString()
	require.NoError(t, err)
	return text
}

// counterOf is a server's counter as it writes it.
func counterOf(t *testing.T, n *valkeytest.Node, slot string) string {
	return textOf(t, n, "ZSCORE", "fences", slot)
}

// Of acquisitions of keys that share a counter, by themselves or in one command, those that raise
// it are told that they have, and the others what would. Each has the key. Who asks again has
// raised nothing.
func TestKeysThatShareACounter(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	first := uint64(time.Now().UnixMicro())
	keys := 0
	acquire := func(slot string, after uint64) *Call {
		keys++
		return sharing(Acquire, fmt.Sprintf("{%d}", keys), slot, strconv.FormatUint(first+after, 10))
	}
	said := func(calls []*Call, want ...uint64) {
		t.Helper()
		for i, a := range ask(t, n.Client(), vouched, calls...) {
			require.NoError(t, a.Err)
			require.Equal(t, OK, a.Verdict)
			require.Equal(t, want[i], a.Token-first, i)
			require.NotZero(t, a.Server)
			require.Equal(t, calls[i].Lock, textOf(t, n, "GET", calls[i].Keys.Lock))
		}
	}
	together := []*Call{acquire("1", 5), acquire("2", 5), acquire("1", 6), acquire("1", 6), acquire("1", 2)}
	require.Len(t, together, new(Buffers).Group(together))
	said(together, 5, 5, 6, 7, 7)
	for _, c := range []struct{ token, want uint64 }{{6, 7}, {7, 7}, {7, 8}, {3, 8}, {9, 9}} {
		said([]*Call{acquire("1", c.token)}, c.want)
	}
	said(together[:1], 10)
	said(together, 10, 6, 10, 10, 10)
	require.Equal(t, strconv.FormatUint(first+9, 10), counterOf(t, n, "1"))
	require.Equal(t, strconv.FormatUint(first+5, 10), counterOf(t, n, "2"))
	seen := ask(t, n.Client(), vouched, sharing(Observe, "{1}", "1", ""))[0]
	require.Equal(t, first+5, seen.Token, "whatever its counter is now")
	require.Equal(t, ownerOf("{1}"), seen.More().Owner)
}

// Whoever finds a queue full gives it an expiry if it has none, and keeps it no longer than it is.
func TestFullQueueExpires(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	members := []string{"ZADD", "{a}:wait"}
	for i := range 4096 {
		members = append(members, strconv.Itoa(i), "2 "+strconv.Itoa(i))
	}
	require.NoError(t, n.Do(t, members...).Error())
	for _, expiry := range []string{"", "60000"} {
		if expiry != "" {
			require.NoError(t, n.Do(t, "PEXPIRE", "{a}:wait", expiry).Error())
		}
		join := sharing(Join, "{a}", "1", "1")
		join.Member, join.QueueLife = pairMembers[0], strconv.Itoa(3_600_000)
		require.NoError(t, ask(t, n.Client(), vouched, join)[0].Err)
		require.EqualValues(t, 4096, number(t, n, "ZCARD", "{a}:wait"))
		if left := number(t, n, "PTTL", "{a}:wait"); expiry == "" {
			require.InDelta(t, 3_600_000, left, 600_000)
		} else {
			require.LessOrEqual(t, left, int64(60000))
		}
	}
}

// A lock is a token and an owner value; what else is there is all owner.
func TestLockIsSplit(t *testing.T) {
	owner := NewOwner("1 host 2", "10.0.0.1:80")
	const first = 1780000000000001
	for lock, token := range map[string]uint64{
		Lock(strconv.Itoa(first), owner): first, Lock("0", owner): 0, Lock(strconv.Itoa(MaxToken), owner): MaxToken,
		Lock(strconv.Itoa(MaxToken+1), owner): 0, Lock("18446744073709551616", owner): 0,
	} {
		got, of := splitLock(lock)
		require.Equal(t, token, got, "%q", lock)
		require.Equal(t, owner, of, "%q", lock)
	}
	for _, lock := range []string{Lock("-5", owner), Lock("", owner), "7 a backup", "", reservation + pairMembers[0], reservation + NewMember(math.MaxUint64, NewProcess(), owner)} {
		token, of := splitLock(lock)
		require.Zero(t, token, "%q", lock)
		require.Equal(t, lock, of)
	}
}

// Processes must agree on which counter a key has.
func TestSlots(t *testing.T) {
	require.Equal(t, "3366", NewKeys("p", "a/b").Slot)
	require.Equal(t, NewKeys("p", "a/b").Slot, NewKeys("another", "a/b").Slot)
}

// A key is set before its counter is raised. An error midway is no grant, and an extension is none
// the worse for it: the counter is for the next lease.
func TestKeyIsSetFirst(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	token := strconv.FormatInt(time.Now().UnixMicro(), 10)
	require.NoError(t, n.Do(t, "ZADD", "fences", "5", "1").Error())
	require.NoError(t, n.Do(t, "ACL", "SETUSER", "half", "reset", "on", ">pass", "+@all", "~{*", "%R~fences", "(+eval +evalsha ~*)").Error())
	half, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{n.Addr()}, Username: "half", Password: "pass", ForceSingleClient: true, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(half.Close)
	refused := "(?i)no permissions to access a key|no permissions to access one of the keys|can't access at least one of the keys" // the last two are Redis 7.0's
	together := []*Call{sharing(Acquire, "{a}", "1", token), sharing(Acquire, "{b}", "1", token)}
	for _, a := range Decode(together, do(t, half, vouched, together...), nil) {
		require.True(t, a.Alone)
		require.Regexp(t, refused, a.Err.Error())
	}
	require.ElementsMatch(t, []string{"fences", "{a}"}, n.Keys(t))
	c := sharing(Acquire, "{c}", "1", token)
	require.Regexp(t, refused, ask(t, half, vouched, c)[0].Err)
	again := ask(t, half, vouched, c)[0]
	require.NoError(t, again.Err)
	require.Equal(t, token, strconv.FormatUint(again.Token-1, 10), "it has the key, and has raised nothing")
	c.Op, c.TTL = Extend, "80000"
	got := ask(t, half, vouched, c)[0]
	require.NoError(t, got.Err)
	require.Equal(t, InPlace, got.Extended)
	require.Greater(t, number(t, n, "PTTL", "{c}"), int64(60_000))
	require.Equal(t, "5", counterOf(t, n, "1"))
}

// An extension alone raises the counter to its token, and lowers none.
func TestExtensionLowersNoCounter(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	c := sharing(Extend, "{a}", "1", "1000000000000001")
	require.NoError(t, n.Do(t, "SET", "{a}", c.Lock).Error())
	for before, after := range map[string]string{"": "1000000000000001", "7": "1000000000000001", "1000000000000002": "1000000000000002", "inf": "inf"} {
		require.NoError(t, n.Do(t, "DEL", "fences").Error())
		if before != "" {
			require.NoError(t, n.Do(t, "ZADD", "fences", before, "1").Error())
		}
		require.NoError(t, ask(t, n.Client(), vouched, c)[0].Err)
		require.Equal(t, after, counterOf(t, n, "1"))
	}
}

// A counter may be any number that a server knows, if something else has written it. What is no
// token is damaged.
func TestCounterThatIsNoToken(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	for score, next := range map[string]uint64{
		"-inf": 17, "-1": 17, "0": 17, "1e-300": 17, "16.5": 17, "17.2": 18, "1e15": 1e15 + 1, "9007199254740990": MaxToken, // a double has no half there
		"9007199254740991": 0, "9007199254740992": 0, "1e300": 0, "inf": 0,
	} {
		require.NoError(t, n.Do(t, "FLUSHALL").Error())
		require.NoError(t, n.Do(t, "ZADD", "fences", score, "1").Error())
		for _, calls := range [][]*Call{
			{sharing(Acquire, "{a}", "1", "17")}, {sharing(Acquire, "{b}", "2", "17"), sharing(Acquire, "{c}", "1", "17")}, {sharing(Agree, "{a}", "1", "18")},
		} {
			for i, a := range ask(t, n.Client(), vouched, calls...) {
				switch {
				case calls[i].Keys.Slot == "2":
				case next == 0:
					require.True(t, FaultOf(a.Err).IsAny(Damaged), "%s: %v", score, a.Err)
				case calls[i].Op == Acquire && calls[i].Keys.Lock == "{a}":
					require.NoError(t, a.Err, score)
					require.Equal(t, next, a.Token, score)
				}
			}
		}
	}
	require.NoError(t, n.Do(t, "FLUSHALL").Error())
	require.NoError(t, n.Do(t, "SET", "fences", "x").Error())
	for _, calls := range [][]*Call{{sharing(Acquire, "{a}", "1", "17")}, {sharing(Acquire, "{b}", "2", "17"), sharing(Acquire, "{c}", "1", "17")}, {sharing(Agree, "{a}", "1", "18")}} {
		for range 2 { // the second time it is the attempt's own
			for _, a := range ask(t, n.Client(), vouched, calls...) {
				require.True(t, FaultOf(a.Err).IsAny(Damaged), "%v", a.Err)
			}
		}
	}
}

// A token is raised in the attempt's own key and in the counter, and only if that raises the
// counter. Where the key is gone or another owner's nothing is written, and a waiter joins no
// queue.
func TestAgreementIsARaise(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	own, other := ownerOf("{a}"), ownerOf("another")
	for i, test := range []struct {
		lock, counter, token string
		want                 Verdict
		next                 uint64
	}{
		{Lock("5", own), "5", "6", OK, 0}, {Lock("5", own), "1", "6", OK, 0}, {Lock("9", own), "5", "6", OK, 0},
		{Lock("5", own), "6", "6", Refused, 7}, {Lock("6", own), "6", "6", Refused, 7}, {Lock("5", own), "8", "6", Refused, 9}, // perhaps it was raised for another key
		{Lock("5", other), "5", "6", Refused, 0}, {"", "5", "6", Refused, 0},
	} {
		slot := strconv.Itoa(i)
		require.NoError(t, n.Do(t, "DEL", "{a}").Error())
		if test.lock != "" {
			require.NoError(t, n.Do(t, "SET", "{a}", test.lock, "PX", "30000").Error())
		}
		require.NoError(t, n.Do(t, "ZADD", "fences", test.counter, slot).Error())
		call := sharing(Agree, "{a}", slot, test.token)
		call.Member = pairMembers[0]
		agreed := ask(t, n.Client(), vouched, call)[0]
		require.NoError(t, agreed.Err)
		require.Equal(t, test.want, agreed.Verdict, "%+v", test)
		require.Equal(t, test.next, agreed.Token, "%+v", test)
		if test.want == OK {
			test.lock, test.counter = call.Lock, test.token
			require.InDelta(t, 15_001, number(t, n, "PTTL", "{a}"), 15_000, "agreement does not prolong it")
		}
		if test.lock != "" {
			require.Equal(t, test.lock, textOf(t, n, "GET", "{a}"), "%+v", test)
		}
		require.EqualValues(t, min(len(test.lock), 1), number(t, n, "EXISTS", "{a}", "{a}:wait"))
		require.Equal(t, test.counter, counterOf(t, n, slot), "%+v", test)
	}
}

// A release calls the first three waiters, however many dead ones are between them, and looks no
// further than it needs to. It reserves the key for the first of them, unless the key is kept.
func TestReleaseLooksForOthersToCall(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	for name, test := range map[string]struct {
		queue string // processes, in their order; d is dead, o a member of another version, x of none
		want  string // who is called
		left  string // the queue after that
	}{
		"nobody":                      {"", "", ""},
		"one":                         {"a", "a", ""},
		"three":                       {"abc", "abc", "bc"},
		"more than are called":        {"abcef", "abc", "bcef"},
		"one that has just given up":  {"aabc", "aab", "abc"},
		"the dead":                    {"dda", "a", ""},
		"many dead":                   {strings.Repeat("d", 100) + "a" + strings.Repeat("d", 100) + "bc", "abc", "bc"},
		"the dead in between":         {"adbdcd", "abc", "bcd"},
		"the dead at the chunk's end": {"addb" + strings.Repeat("d", 16) + "c", "abc", "bc"},
		"only the dead":               {strings.Repeat("d", 20), "", ""},
		"another version":             {"oaobocof", "abc", "oobocof"},
		"another version's crowd":     {strings.Repeat("o", 100) + "ab", "ab", strings.Repeat("o", 100) + "b"},
		"a crowd in between":          {"a" + strings.Repeat("do", 100) + "b", "ab", strings.Repeat("o", 100) + "b"},
		"only another version":        {strings.Repeat("o", 20), "", strings.Repeat("o", 20)},
		"no version":                  {"xaoxbxoxc", "abc", "oboc"},
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
			Op: Release, Keys: &Keys{Lock: key}, Lock: "1 owner", Keep: "0", Turn: "60000", Channel: channels,
		})[0].Err)
		if test.want == "" {
			require.Zero(t, number(t, n, "EXISTS", key), name)
		} else {
			require.Regexp(t, "^R 1 [0-9]{16} a{22} x$", textOf(t, n, "GET", key), name)
			require.InDelta(t, 60_000, number(t, n, "PTTL", key), 30_000)
		}
		require.NoError(t, n.Do(t, "PUBLISH", channels+process('a'), "the end").Error())
		called := ""
		for m := <-heard; m.Message != "the end"; m = <-heard {
			said, ok := ParseMessage(m.Message)
			require.True(t, ok, "%q", m.Message)
			require.Equal(t, "1 owner", said.Release)
			require.Equal(t, time.Duration(len(called))*time.Minute, said.After, name)
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

// A key that is reserved for a waiter is in the way of all others, who are told for whom and for
// how long it is. The waiter gets it like a free one, and is in no queue then. Nobody's lease is
// it, and no lease but the waiter's is put in its place.
func TestWhomAReservationIsInTheWayOf(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	first, rest := pairMembers[0], pairMembers[1:]
	newcomer := NewMember(5, "eeeeeeeeeeeeeeeeeeeeee", "e")
	for i, test := range []struct {
		member string
		want   Verdict
		left   []string
	}{
		{first, OK, rest},
		{rest[0], Refused, pairMembers},
		{rest[2], Refused, pairMembers},
		{newcomer, Refused, append(slices.Clone(pairMembers), newcomer)},
		{"", Refused, pairMembers},
	} {
		k := &Keys{Lock: fmt.Sprintf("{%d}", i), Fences: "fences", Slot: strconv.Itoa(i)}
		require.NoError(t, n.Do(t, "ZADD", k.Lock+":wait", "1", first, "2", rest[0], "3", rest[1], "4", rest[2]).Error())
		require.NoError(t, n.Do(t, "SET", k.Lock, reservation+first, "PX", "60000").Error())
		require.Equal(t, More{}, *ask(t, n.Client(), vouched, &Call{Op: Observe, Keys: k})[0].More())
		for _, refill := range []*Call{
			{Op: Extend, Keys: k, Lock: "1 me", TTL: "60000", Refill: true, Member: rest[0]},
			{Op: Extend, Keys: k, Lock: "1 me", TTL: "60000", Refill: true},
			{Op: Agree, Keys: k, Lock: "1 me", Member: first},
		} {
			answer := ask(t, n.Client(), vouched, refill)[0]
			require.NoError(t, answer.Err)
			require.Equal(t, Answer{Verdict: Refused, Extended: ByOther}, answer.Answer)
			require.Equal(t, reservation+first, textOf(t, n, "GET", k.Lock))
		}
		got := ask(t, n.Client(), vouched, &Call{Op: Acquire, Keys: k, Lock: "1 me", TTL: "60000", Member: test.member, QueueLife: "180000"})[0]
		require.NoError(t, got.Err)
		require.Equal(t, test.want, got.Verdict, "%+v", test)
		if test.want == Refused {
			require.Equal(t, reservation+first, got.More().Owner, "%+v", test)
			require.InDelta(t, time.Minute, got.More().PTTL, float64(30*time.Second))
		}
		left, err := n.Do(t, "ZRANGE", k.Lock+":wait", "0", "-1").AsStrSlice()
		require.NoError(t, err)
		require.Equal(t, test.left, left, "%+v", test)
	}
	k := &Keys{Lock: "{endless}"}
	require.NoError(t, n.Do(t, "SET", k.Lock, reservation+first).Error())
	require.Equal(t, NoExpiry, ask(t, n.Client(), vouched, &Call{Op: Observe, Keys: k})[0].More().PTTL, "something else wrote it")

	// A lease puts its key back in place of the reservation for its attempt, where it may.
	k = &Keys{Lock: "{mine}", Fences: "fences", Slot: "1"}
	require.NoError(t, n.Do(t, "SET", k.Lock, reservation+first, "PX", "60000").Error())
	for _, test := range []struct {
		refill bool
		said   Extended
		left   string
	}{{false, Gone, reservation + first}, {true, Refilled, "1 me"}} {
		said := ask(t, n.Client(), vouched, &Call{Op: Extend, Keys: k, Lock: "1 me", TTL: "60000", Refill: test.refill, Member: first})[0]
		require.NoError(t, said.Err)
		require.Equal(t, test.said, said.Extended)
		require.Equal(t, test.left, textOf(t, n, "GET", k.Lock))
	}
	require.NoError(t, n.Do(t, "SET", k.Lock, reservation, "PX", "60000").Error())
	require.Equal(t, ByOther, ask(t, n.Client(), vouched, &Call{Op: Extend, Keys: k, Lock: "1 me", TTL: "60000", Refill: true})[0].Extended)
}

// A waiter that gives up, or is rolled back, gives back the key that is reserved for it. One that
// gives up, or has had the lease, calls the next ones if the key is free then: else they have been
// called, or a release calls them. Nobody listens here, so one that is called loses its place.
func TestWaiterThatLeavesGivesItsTurnBack(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	mine, stay := pairMembers[1], []string{pairMembers[0], pairMembers[2], pairMembers[3]}
	for i, test := range []struct {
		op   Op
		lock string
		turn string
		want Verdict
		left []string
	}{
		{Leave, "", "1000", OK, nil}, {Leave, reservation + mine, "1000", OK, nil}, {Leave, reservation + stay[0], "1000", OK, stay}, {Leave, "1 o", "1000", OK, stay},
		{Release, reservation + mine, "1000", OK, nil}, {Release, "1 me", "1000", OK, nil}, {Release, "", "1000", Refused, nil},
		{Release, reservation + mine, "", OK, stay}, {Release, reservation + stay[0], "", Refused, stay}, {Release, reservation, "", Refused, stay},
	} {
		k := &Keys{Lock: fmt.Sprintf("{%d}", i)}
		for j, m := range pairMembers {
			require.NoError(t, n.Do(t, "ZADD", k.Lock+":wait", strconv.Itoa(j+1), m).Error())
		}
		if test.lock != "" {
			require.NoError(t, n.Do(t, "SET", k.Lock, test.lock, "PX", "60000").Error())
		}
		c := &Call{Op: test.op, Keys: k, Lock: "1 me", Member: mine, Keep: "0", Turn: test.turn, Channel: "call:"}
		if test.op == Leave {
			c.Lock = mine
		}
		got := ask(t, n.Client(), vouched, c)[0]
		require.NoError(t, got.Err)
		require.Equal(t, test.want, got.Verdict, "%+v", test)
		left, err := n.Do(t, "ZRANGE", k.Lock+":wait", "0", "-1").AsStrSlice()
		require.NoError(t, err)
		require.ElementsMatch(t, test.left, left, "%+v", test)
		gone := test.lock == "" || test.lock == "1 me" || test.lock == reservation+mine
		require.Equal(t, !gone, number(t, n, "EXISTS", k.Lock) == 1, "%+v", test)
	}
	stranger := &Call{Op: Release, Keys: &Keys{Lock: "{stranger}"}, Lock: "1 me", Keep: "0"}
	require.NoError(t, n.Do(t, "SET", "{stranger}", reservation).Error())
	require.Equal(t, Refused, ask(t, n.Client(), vouched, stranger)[0].Verdict)
}

// Texts that are longer than any that this library writes are told by their beginning, or not at
// all: an answer has its bounds.
func TestLongTextsAreToldBriefly(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	long := strings.Repeat("x", 2_000_000)
	set := func(words ...string) { require.NoError(t, n.Do(t, words...).Error()) }
	acquire := func(k *Keys) *Call {
		return &Call{Op: Acquire, Keys: k, Lock: "1 me", TTL: "60000", Member: pairMembers[0], QueueLife: "180000"}
	}
	held, reserved := NewKeys("p", "held"), NewKeys("p", "reserved")
	set("SET", held.Lock, long)
	set("SET", reserved.Lock, "R 1 "+long, "PX", "60000")
	for _, packet := range [][]*Call{{acquire(&held)}, {acquire(&reserved)}, {acquire(&held), acquire(&reserved)}} {
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

// registrar tells a server who uses it.
type registrar struct {
	t *testing.T
	n *valkeytest.Node
}

// say writes entries, takes others back, and returns what was there before.
func (r registrar) say(write []Entry, back ...[2]string) *Roster {
	r.t.Helper()
	a, err := r.call(RosterWords(back, write))
	require.NoError(r.t, err)
	require.Equal(r.t, OK, a.Verdict)
	return a.More().Roster
}

func (r registrar) call(words []string) (Answer, error) {
	keys := RosterKeys("p")
	got := ask(r.t, r.n.Client(), nil, &Call{Op: Enroll, Keys: &keys, Roster: words})[0]
	return got.Answer, cmp.Or(got.Err, got.More().Unkept)
}

// older lets what is there have been so long ago.
func (r registrar) older(by time.Duration) {
	r.t.Helper()
	values, err := r.n.Do(r.t, "HGETALL", "p:roster").AsStrMap()
	require.NoError(r.t, err)
	for field, value := range values {
		var ms int64
		_, err := fmt.Sscan(value, &ms)
		require.NoError(r.t, err)
		_, rest, _ := strings.Cut(value, " ")
		require.NoError(r.t, r.n.Do(r.t, "HSET", "p:roster", field, fmt.Sprint(ms-by.Milliseconds())+" "+rest).Error())
	}
}

func listBy(who string, names ...string) Entry {
	return Entry{Field: append([]string{RosterList, "true", "10s", "2s"}, names...), Says: []string{who}, Life: time.Minute}
}

// What processes write is there for as long as it is fresh, and is answered as it was before.
func TestRosterIsKept(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	require.Empty(t, r.say(nil).Entries)
	exists, err := r.n.Do(t, "EXISTS", "p:roster").AsInt64()
	require.NoError(t, err)
	require.Zero(t, exists, "who reads writes nothing")

	all := []Entry{
		{Field: []string{RosterServer, "a b", "0123"}, Says: []string{"", "h:1"}, Life: 10 * time.Second},
		listBy("ann, 1", "a b", "c+d"),
		{Field: []string{RosterRefused, "bob\n"}, Says: []string{"another_list", "x"}, Life: time.Minute},
	}
	require.Empty(t, r.say(all).Entries)
	expires, err := r.n.Do(t, "PTTL", "p:roster").AsInt64()
	require.NoError(t, err)
	require.Greater(t, expires, (47 * time.Hour).Milliseconds())
	is := r.say(nil)
	require.Len(t, is.Entries, 3)
	require.Equal(t, []string{"?", "h:1"}, is.Entries[0].Says)
	require.Equal(t, all[1].Field, is.Entries[1].Field)
	require.Equal(t, []string{"ann, 1"}, is.Entries[1].Says)
	require.Equal(t, []string{RosterRefused, "bob?"}, is.Entries[2].Field)

	r.older(11 * time.Second)
	is = r.say(nil)
	require.Len(t, is.Entries, 2, "its life is over")
	require.Len(t, is.Stale, 1)
	require.GreaterOrEqual(t, is.Entries[0].Age, 11*time.Second)
	require.Len(t, r.say(nil, is.Stale...).Stale, 1)
	require.Empty(t, r.say(nil).Stale, "who writes removes it")
}

// Another type of value is named, what is no entry is none, and a full server says so, and keeps
// the roster. Something under the name that is kept is told of.
func TestForeignRoster(t *testing.T) {
	t.Parallel()
	r := registrar{t, valkeytest.Start(t, 1).Node(0)}
	require.NoError(t, r.n.Do(t, "SET", "p:roster", "x").Error())
	_, err := r.call(RosterWords(nil, nil))
	require.Equal(t, Damaged, FaultOf(Diagnose(err)).Condition)
	require.NoError(t, r.n.Do(t, "DEL", "p:roster").Error())
	require.False(t, r.say(nil).Reserved)
	require.NoError(t, r.n.Do(t, "SET", "p:nodes", "x").Error())
	require.True(t, r.say(nil).Reserved)
	now, far := fmt.Sprint(time.Now().UnixMilli()), strings.Repeat("9", 400)
	for field, value := range map[string]string{
		"x": "y", "list true 1s 1s a": far + " " + far + " x", "at a": now + " 60000 x y", "list true 1s 1s": now + " 60000 x", "other x": now + " 60000 x",
		"refused x": now + " 60000 y", "list true 1s 1s b": now + " -1 x", "list true 1s 1s c": now, "": "",
	} {
		require.NoError(t, r.n.Do(t, "HSET", "p:roster", field, value).Error())
	}
	is := r.say(nil)
	require.Empty(t, is.Entries)
	require.Len(t, is.Stale, 9)
	require.NoError(t, r.n.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	a, err := r.call(RosterWords(nil, []Entry{listBy("x", "a")}))
	require.NoError(t, err)
	require.ErrorContains(t, errors.Join(a.More().Trial...), "OOM")
	require.Len(t, r.say(nil).Entries, 1, "the trial has nothing in the way of it")
}

// The trial names the right that is missing, also where the roster needs it as well.
func TestTrialNamesEachRight(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	keys := RosterKeys("p")
	call := &Call{Op: Enroll, Keys: &keys, Roster: RosterWords([][2]string{{"a", "b"}}, []Entry{listBy("x", "a")})}
	for i, trial := range Trials {
		if strings.HasPrefix(trial.Command, "EVAL") {
			continue
		}
		require.NoError(t, n.Do(t, "ACL", "SETUSER", "u", "reset", "on", ">pass", "+@all", "-"+trial.Command, "~*", "&*").Error())
		u, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{n.Addr()}, Username: "u", Password: "pass", ForceSingleClient: true, DisableCache: true})
		require.NoError(t, err)
		a := ask(t, u, nil, call)[0]
		u.Close()
		require.NoError(t, a.Err, trial.Command)
		require.Equal(t, NoPermission, FaultOf(a.More().Trial[i]).Condition, trial.Command)
	}
}

// Whatever a server sends for a roster is read without harm.
func TestParseRosterIsSafe(t *testing.T) {
	word := rapid.OneOf(rapid.String(), rapid.StringMatching(`(list|at|refused|lead)( [0-9a-f%,-]{0,20}){0,6}`), rapid.StringMatching(`[0-9]{0,20} [0-9]{0,20}( [a-z,%0-9]{0,8}){0,4}`))
	rapid.Check(t, func(rt *rapid.T) {
		fields := rapid.MapOf(word, word).Draw(rt, "fields")
		r := ParseRoster(fields, time.Hour)
		require.Len(rt, fields, len(r.Entries)+len(r.Stale))
		for _, e := range r.Entries {
			require.GreaterOrEqual(rt, e.Age, time.Duration(0))
			for _, text := range append(e.Field, e.Says...) {
				require.LessOrEqual(rt, len(text), 4*maxSaid)
			}
			switch e.Field[0] {
			case RosterList:
				require.GreaterOrEqual(rt, len(e.Field), 5)
			case RosterServer:
				require.GreaterOrEqual(rt, len(e.Says), 2)
			default:
				require.Equal(rt, RosterRefused, e.Field[0])
			}
		}
	})
}
