package wire

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

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

// The counters are kept for a day from whenever one of them passes a multiple of 2^32 us; to set
// their expiry with each grant would cost more than the grant's counter.
func TestCountersAreKeptWhileTheyAreUsed(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	const period = 1 << 32
	now := time.Now().UnixMicro()
	mark := now/period*period - 1 // the last moment of a period
	for name, test := range map[string]struct {
		before int64
		kept   bool
	}{
		"none before": {0, true}, "in the period": {now/period*period + 1, false}, "in the period before": {mark, true}, "long ago": {mark - 100*period, true},
	} {
		for _, packet := range []int{1, 3} {
			require.NoError(t, n.Do(t, "FLUSHALL").Error())
			require.NoError(t, n.Do(t, "HSET", "fences", "other", "1").Error())
			if test.before > 0 {
				require.NoError(t, n.Do(t, "HSET", "fences", "1", strconv.FormatInt(test.before, 10)).Error())
			}
			require.NoError(t, n.Do(t, "PEXPIRE", "fences", "3600000").Error())
			var calls []*Call
			for i := range packet {
				calls = append(calls, sharing(Acquire, fmt.Sprintf("{%d}", i), "1", strconv.FormatInt(max(now, now/period*period+100), 10)))
			}
			for _, a := range ask(t, n.Client(), vouched, calls...) {
				require.NoError(t, a.Err)
				require.Equal(t, OK, a.Verdict)
			}
			left, err := n.Do(t, "PTTL", "fences").AsInt64()
			require.NoError(t, err)
			require.Equal(t, test.kept, left > 3_600_000, "%s, %d in a packet: %d", name, packet, left)
			require.Less(t, left, (27 * time.Hour).Milliseconds())
		}
	}
}

// Who joins a queue says that there may be some, until the longest of them is over, whatever was
// said before.
func TestQueuesAreSaid(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	waits := func(op Op, key, lifetime string) *Call {
		require.NoError(t, n.Do(t, "SET", key, "1 somebody", "PX", "60000").Error())
		c := sharing(op, key, "1", strconv.FormatInt(time.Now().UnixMicro(), 10))
		c.Member, c.QueueLife = pairMembers[0], lifetime
		return c
	}
	for _, before := range []string{"", "0", "nan", "x", "-inf", "inf", "1e300", "9999999999999999"} {
		for _, calls := range [][]*Call{
			{waits(Acquire, "{a}", "180000")}, {waits(Acquire, "{a}", "180000"), waits(Acquire, "{b}", "3000")}, {waits(Join, "{a}", "180000")},
		} {
			require.NoError(t, n.Do(t, "DEL", "fences").Error())
			if before != "" {
				require.NoError(t, n.Do(t, "HSET", "fences", "queues", before).Error())
			}
			for _, a := range ask(t, n.Client(), vouched, calls...) {
				require.NoError(t, a.Err)
			}
			said, err := strconv.ParseFloat(textOf(t, n, "HGET", "fences", "queues"), 64)
			require.NoError(t, err)
			require.InDelta(t, float64(time.Now().Add(180*time.Second).UnixMilli()), said, 60_000, "%q", before)
		}
	}
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
	for _, lock := range []string{Lock("-5", owner), Lock("", owner), "7 a backup", "", pairMembers[0], NewMember(math.MaxUint64, NewProcess(), owner)} {
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
	hint := strconv.FormatInt(time.Now().UnixMicro(), 10)
	require.NoError(t, n.Do(t, "HSET", "fences", "1", strconv.FormatInt(time.Now().UnixMicro()-1, 10)).Error()) // so that nothing else is written to it
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
	c.Spread, c.Token = "0", uint64(time.Now().UnixMicro())
	require.NoError(t, n.Do(t, "SET", "{a}", c.Lock, "PX", "20000").Error())
	require.NoError(t, n.Do(t, "HDEL", "fences", "1").Error()) // so that there is something to write
	got := ask(t, half, vouched, c)[0]
	require.NoError(t, got.Err)
	require.Equal(t, InPlace, got.Extended)
	require.Greater(t, number(t, n, "PTTL", "{a}"), int64(20_000))
}

// An extension that heals puts its token in the place of a counter that is damaged. One that leads
// the server's clock by days is that only by the latest time that is known: a server may be days
// behind, and its counter be as high as those of the others. Any other extension lowers none.
func TestExtensionLowersNoGoodCounter(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	micros := func(ahead time.Duration) string { return strconv.FormatInt(time.Now().Add(ahead).UnixMicro(), 10) }
	ahead := micros(50 * time.Hour)
	const token, owner, many = "1000000000000001", "me/AAAAAAAAAAAAAAAAAAAAAA", "many"
	for name, test := range map[string]struct{ counter, spread, want string }{
		"far ahead":              {ahead, "0", ahead},
		"as the others":          {ahead, micros(50 * time.Hour), ahead},
		"a little less":          {ahead, micros(27 * time.Hour), ahead},
		"damaged":                {ahead, micros(0), token},
		"damaged by far":         {"9007199254740990", micros(50 * time.Hour), token},
		"no number":              {"x", micros(0), token},
		"no number, of others":   {"x", "0", "x"},
		"beyond 2^53":            {"9007199254740993", micros(0), token},
		"beyond 2^53, of others": {"9007199254740993", "0", "9007199254740993"},
		"no time":                {ahead, "x", ahead},
		"lower":                  {"7", micros(0), token},
		"lower, of others":       {"7", "0", token},
		"many, lower":            {"7", many, token},
		"many, far ahead":        {ahead, many, ahead},
		"many, no number":        {"x", many, "x"},
	} {
		k := &Keys{Lock: "{" + name + "}", Fences: "fences", Slot: "7"}
		require.NoError(t, n.Do(t, "SET", k.Lock, token+" "+owner, "PX", "60000").Error())
		require.NoError(t, n.Do(t, "HSET", k.Fences, k.Slot, test.counter).Error())
		call := &Call{Op: Extend, Keys: k, Lock: token + " " + owner, Token: 1000000000000001, TTL: "60000", Spread: test.spread}
		if test.spread == many {
			call = NewExtendMany("all", "60000", []Held{{Keys: k, Lock: call.Lock}}, true)
		}
		rep := ask(t, n.Client(), vouched, call)[0]
		require.NoError(t, rep.Err, name)
		require.Equal(t, OK, rep.Verdict, name)
		got, err := n.Do(t, "HGET", k.Fences, k.Slot).ToString()
		require.NoError(t, err)
		require.Equal(t, test.want, got, name)
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
		{"5", "6", "6", "1", "6"}, {"5", "9", "6", "1", "9"}, {"6", "5", "6", "0", "5"}, // the counter was raised for another key, or lost
		{"5", "5", "9007199254740992", damaged, "5"}, {"5", "5", "18446744073709551615", damaged, "5"},
		{"5", "x", "6", damaged, "x"}, {"5", "9007199254740992", "6", damaged, "9007199254740992"}, {"9007199254740992", "5", "6", "0", "5"},
	} {
		k := &Keys{Lock: fmt.Sprintf("{%d}", i), Fences: fmt.Sprintf("{%d}:fence", i), Slot: "7"}
		require.NoError(t, n.Do(t, "SET", k.Lock, Lock(test.has, someOwner), "PX", "60000").Error())
		require.NoError(t, n.Do(t, "HSET", k.Fences, k.Slot, test.fence).Error())
		token, err := strconv.ParseUint(test.token, 10, 64)
		require.NoError(t, err)
		agreed := ask(t, n.Client(), vouched, &Call{Op: Agree, Keys: k, Lock: Lock(test.token, someOwner), Token: token})[0]
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
