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
func sharing(op Op, key, slot, hint string) *Call {
	number, _ := strconv.ParseUint(slot, 10, 32)
	c := &Call{Op: op, Keys: &Keys{Name: key, Lock: key, Fences: "fences", Slot: slot, slot: uint32(number)}, Lock: Lock(hint, ownerOf(key)), QueueLife: "180000"}
	if op == Release {
		c.Keep, c.Turn, c.Channel = "0", "1000", "call:"
	} else {
		c.TTL, c.Hint, c.Skew = "60000", hint, "20000000"
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

// Acquisitions of keys that share a counter travel in commands of their own, so each has another
// token, and each lock has its own. Releases raise no counter.
func TestKeysThatShareACounter(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	hint := time.Now().UnixMicro()
	text := strconv.FormatInt(hint, 10)
	rest := []*Call{
		sharing(Acquire, "{a}", "1", text), sharing(Acquire, "{b}", "2", text), sharing(Acquire, "{c}", "1", text), sharing(Release, "{x}", "1", text),
		sharing(Release, "{y}", "1", text), sharing(Acquire, "{d}", "1", text),
	}
	var answers []Result
	for _, want := range []int{2, 3, 1} {
		size := new(Buffers).Group(rest)
		require.Equal(t, want, size)
		answers = append(answers, ask(t, n.Client(), vouched, rest[:size]...)...)
		rest = rest[size:]
	}
	answers = append(answers[:3], answers[5])
	for i, want := range []int64{0, 0, 1, 2} {
		require.NoError(t, answers[i].Err)
		require.EqualValues(t, hint+want, answers[i].Token)
		key := fmt.Sprintf("{%c}", 'a'+i)
		require.Equal(t, Lock(strconv.FormatInt(hint+want, 10), ownerOf(key)), textOf(t, n, "GET", key))
	}
	next := ask(t, n.Client(), vouched, sharing(Acquire, "{e}", "1", text))[0]
	require.EqualValues(t, hint+3, next.Token)
	require.Equal(t, strconv.FormatInt(hint+3, 10), textOf(t, n, "HGET", "fences", "1"))
	require.Equal(t, text, textOf(t, n, "HGET", "fences", "2"))
	seen := ask(t, n.Client(), vouched, sharing(Observe, "{c}", "1", text))[0]
	require.EqualValues(t, hint+1, seen.Token, "whatever its counter is now")
	require.Equal(t, ownerOf("{c}"), seen.More().Owner)

	// What asks again has what it was granted.
	for i, again := range ask(t, n.Client(), vouched, sharing(Acquire, "{c}", "1", text), sharing(Acquire, "{d}", "1", text)) {
		require.EqualValues(t, hint+1+int64(i), again.Token)
	}
	require.EqualValues(t, hint+1, ask(t, n.Client(), vouched, sharing(Acquire, "{c}", "1", text))[0].Token)
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
	require.Equal(t, "8184", NewKeys("p", "a/b").Slot)
	require.Equal(t, NewKeys("p", "a/b").Slot, NewKeys("another", "a/b").Slot)
}

// An error midway leaves no key behind: a grant without its counter could be repeated with the same
// token.
func TestCounterIsWrittenFirst(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	now := time.Now().UnixMicro()
	hint := strconv.FormatInt(now, 10)
	require.NoError(t, n.Do(t, "HSET", "fences", "1", strconv.FormatInt(now-1, 10)).Error()) // so that nothing else is written to it
	require.NoError(t, n.Do(t, "ACL", "SETUSER", "half", "reset", "on", ">pass", "+@all", "~{*", "%R~fences", "(+eval +evalsha ~*)").Error())
	half, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{n.Addr()}, Username: "half", Password: "pass", ForceSingleClient: true, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(half.Close)
	for _, calls := range [][]*Call{
		{sharing(Acquire, "{a}", "1", hint)},
		{sharing(Acquire, "{a}", "1", hint), sharing(Acquire, "{b}", "1", hint)},
	} {
		for _, a := range ask(t, half, vouched, calls...) {
			require.Error(t, a.Err)
			require.Regexp(t, "(?i)no permissions to access a key|no permissions to access one of the keys|can't access at least one of the keys", a.Err.Error()) // the last two are Redis 7.0's
		}
		require.Equal(t, []string{"fences"}, n.Keys(t))
	}
	// The counter is for the next lease: it is no reason to lose one that is held.
	c := sharing(Extend, "{a}", "1", hint)
	require.NoError(t, n.Do(t, "SET", "{a}", c.Lock, "PX", "20000").Error())
	require.NoError(t, n.Do(t, "HDEL", "fences", "1").Error()) // so that there is something to write
	got := ask(t, half, vouched, c)[0]
	require.NoError(t, got.Err)
	require.Equal(t, InPlace, got.Extended)
	require.Greater(t, number(t, n, "PTTL", "{a}"), int64(20_000))
}

// Whatever a client takes the time for, a server lifts no counter beyond its own clock and the
// skew.
func TestServerHoldsAHintToItsClock(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	const skew = 20 * time.Second // of sharing
	for slot, test := range map[string]struct{ hint, most time.Duration }{
		"1": {time.Hour, skew}, "2": {time.Second, time.Second}, "3": {-time.Hour, -time.Hour},
	} {
		before := time.Now()
		c := sharing(Acquire, "{"+slot+"}", slot, strconv.FormatInt(before.Add(test.hint).UnixMicro(), 10))
		got := ask(t, n.Client(), vouched, c)[0]
		require.NoError(t, got.Err)
		require.GreaterOrEqual(t, got.Token, uint64(before.Add(test.most).UnixMicro()), test.hint)
		require.LessOrEqual(t, got.Token, uint64(time.Now().Add(test.most).UnixMicro()), test.hint)
	}
}

// An extension that heals puts its token in the place of a counter that is damaged. One that leads
// the server's clock by days is that only by the latest time that is known: a server may be days
// behind, and its counter be as high as those of the others. Any other extension lowers none.
func TestExtensionLowersNoGoodCounter(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	micros := func(ahead time.Duration) string { return strconv.FormatInt(time.Now().Add(ahead).UnixMicro(), 10) }
	ahead := micros(50 * time.Hour)
	const token, owner = "1000000000000001", "me/AAAAAAAAAAAAAAAAAAAAAA"
	for name, test := range map[string]struct{ counter, heal, want string }{
		"far ahead":            {ahead, "", ahead},
		"as the others":        {ahead, micros(50 * time.Hour), ahead},
		"damaged":              {ahead, micros(0), token},
		"damaged by far":       {"9007199254740990", micros(50 * time.Hour), token},
		"no number":            {"x", micros(0), token},
		"no number, of others": {"x", "", "x"},
		"beyond 2^53":          {"9007199254740993", micros(0), token},
		"lower":                {"7", micros(0), token},
	} {
		k := &Keys{Lock: "{" + name + "}", Fences: "fences", Slot: "7"}
		require.NoError(t, n.Do(t, "SET", k.Lock, token+" "+owner, "PX", "60000").Error())
		require.NoError(t, n.Do(t, "HSET", k.Fences, k.Slot, test.counter).Error())
		call := &Call{Op: Extend, Keys: k, Lock: token + " " + owner, TTL: "60000", Heal: test.heal}
		rep := ask(t, n.Client(), vouched, call)[0]
		require.NoError(t, rep.Err, name)
		require.Equal(t, OK, rep.Verdict, name)
		got, err := n.Do(t, "HGET", k.Fences, k.Slot).ToString()
		require.NoError(t, err)
		require.Equal(t, test.want, got, name)
	}
}

// A server's Lua takes more texts for numbers than this library writes. A counter with one of them
// grants nothing, and is healed by an extension that may.
func TestCounterThatIsNoNumber(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	const token = "1000000000000001"
	now := strconv.FormatInt(time.Now().UnixMicro(), 10)
	heals := &Call{Op: Extend, Keys: &Keys{Lock: "{held}", Fences: "fences", Slot: "7"}, Lock: token + " me", TTL: "60000", Heal: now}
	require.NoError(t, n.Do(t, "SET", "{held}", heals.Lock, "PX", "60000").Error())
	for _, text := range []string{"18446744073709551610", "1e15", "0x5AF3107A4000", "nan", "inf", "-1", " 5", "", "text\r\n-ERR"} {
		require.NoError(t, n.Do(t, "HSET", "fences", "7", text).Error())
		require.ErrorContains(t, ask(t, n.Client(), vouched, sharing(Acquire, "{free}", "7", now))[0].Err, "TENUREDAMAGED", "%q", text)
		require.NoError(t, ask(t, n.Client(), vouched, heals)[0].Err)
		require.Equal(t, token, textOf(t, n, "HGET", "fences", "7"), "%q", text)
	}
}

// A client that knows no time gives no hint. A server then grants with whatever number its counter
// is, because it may be days behind itself: the client judges the token.
func TestGrantWithoutAHintIsJudgedByTheClient(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	ahead := time.Now().Add(50 * time.Hour).UnixMicro()
	for hint, granted := range map[string]bool{"0": true, strconv.FormatInt(ahead, 10): true, strconv.FormatInt(time.Now().UnixMicro(), 10): false} {
		k := &Keys{Lock: "{" + hint + "}", Fences: "fences", Slot: "7"}
		require.NoError(t, n.Do(t, "HSET", k.Fences, k.Slot, strconv.FormatInt(ahead, 10)).Error())
		rep := ask(t, n.Client(), vouched, &Call{Op: Acquire, Keys: k, Lock: Lock(hint, "me"), TTL: "60000", Hint: hint, Skew: "2000000"})[0]
		if granted {
			require.NoError(t, rep.Err, hint)
			require.Equal(t, uint64(ahead)+1, rep.Token)
		} else {
			require.ErrorContains(t, rep.Err, "TENUREDAMAGED")
		}
	}
}

const someOwner = "host one/AAAAAAAAAAAAAAAAAAAAAA"

// No server raises its counter to a token that is damaged, or beyond one of its own that is.
func TestAgreementIsNotLed(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	far := strconv.FormatInt(time.Now().Add(49*time.Hour).UnixMicro(), 10)
	const damaged = "TENUREDAMAGED"
	for i, test := range []struct{ has, fence, token, want, counter string }{
		{"5", "5", "6", "1", "6"}, {"6", "6", "6", "0", "6"}, {"7", "7", "6", "0", "7"}, {"5", "5", far, "1", far},
		{"5", "6", "6", "1", "6"}, {"5", "9", "6", "1", "9"}, {"6", "5", "6", "0", "5"}, {"5", far, "6", "1", far}, // the counter was raised for another key, or lost
		{"5", "5", "9007199254740992", damaged, "5"}, {"5", "5", "18446744073709551615", damaged, "5"},
		{"5", "x", "6", damaged, "x"}, {"5", "9007199254740992", "6", damaged, "9007199254740992"}, {"9007199254740992", "5", "6", "0", "5"},
	} {
		k := &Keys{Lock: fmt.Sprintf("{%d}", i), Fences: fmt.Sprintf("{%d}:fence", i), Slot: "7"}
		require.NoError(t, n.Do(t, "SET", k.Lock, Lock(test.has, someOwner), "PX", "60000").Error())
		require.NoError(t, n.Do(t, "HSET", k.Fences, k.Slot, test.fence).Error())
		agreed := ask(t, n.Client(), vouched, &Call{Op: Agree, Keys: k, Lock: Lock(test.token, someOwner), Hint: test.token})[0]
		text := map[Verdict]string{OK: "1", Refused: "0"}[agreed.Verdict]
		if agreed.Err != nil {
			text = agreed.Err.Error()
		}
		require.Contains(t, text, test.want, "%+v", test)
		if test.want == "1" {
			test.has = test.token
		}
		require.Equal(t, Lock(test.has, someOwner), textOf(t, n, "GET", k.Lock), "%+v", test)
		require.Equal(t, test.counter, textOf(t, n, "HGET", k.Fences, k.Slot), "%+v", test)
		require.InDelta(t, 30_001, number(t, n, "PTTL", k.Lock), 30_000, "agreement does not prolong it")
	}
}

// A token is raised in the attempt's own key only. Where that is gone or another owner's nothing
// is written, and a waiter joins no queue by it, nor is it told of a damaged counter.
func TestAgreementOnAKeyThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	for i, lock := range []string{"", "5 " + ownerOf("another")} {
		for _, fence := range []string{"5", "x"} {
			k := &Keys{Lock: fmt.Sprintf("{%d%s}", i, fence), Fences: "fences", Slot: fence}
			require.NoError(t, n.Do(t, "HSET", k.Fences, k.Slot, fence).Error())
			if lock != "" {
				require.NoError(t, n.Do(t, "SET", k.Lock, lock, "PX", "60000").Error())
			}
			agreed := ask(t, n.Client(), vouched, &Call{Op: Agree, Keys: k, Lock: Lock("6", someOwner), Hint: "6", Member: pairMembers[0], QueueLife: "180000"})[0]
			require.NoError(t, agreed.Err, "%q", lock)
			require.Equal(t, Refused, agreed.Verdict, "%q", lock)
			require.Equal(t, fence, textOf(t, n, "HGET", k.Fences, k.Slot))
			require.EqualValues(t, min(len(lock), 1), number(t, n, "EXISTS", k.Lock, k.Lock+":wait"), "%q", lock)
		}
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

// A key that is reserved for a waiter is in the way of all others, who are told for whom and for how
// long it is. The waiter gets it like a free one, and is in no queue then. Nobody's lease is it, and
// no lease that was there before is put in its place.
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
			{Op: Extend, Keys: k, Lock: "1 me", TTL: "60000", Refill: true, Member: first},
			{Op: Agree, Keys: k, Lock: "1 me", Hint: "1", Member: first},
		} {
			answer := ask(t, n.Client(), vouched, refill)[0]
			require.NoError(t, answer.Err)
			require.Equal(t, Answer{Verdict: Refused, Extended: ByOther}, answer.Answer)
			require.Equal(t, reservation+first, textOf(t, n, "GET", k.Lock))
		}
		got := ask(t, n.Client(), vouched, &Call{Op: Acquire, Keys: k, Lock: "1 me", TTL: "60000", Hint: "1", Skew: "2000000", Member: test.member, QueueLife: "180000"})[0]
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
		return &Call{Op: Acquire, Keys: k, Lock: "1 me", TTL: "60000", Hint: "1", Skew: "2000000", Member: pairMembers[0], QueueLife: "180000"}
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
