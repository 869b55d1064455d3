package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// What another version of this library has recorded of a sequence is neither read nor written, by
// any script. A grant fails, and the error says which version it is; a lease that is held is
// extended and released all the same.
func TestRecordOfAnotherVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	k := &Keys{Lock: "{key}", Fences: "{key}:fence", Slot: "7"}
	once := Once{Number: 7, Keep: "3600000"}.Words()
	acquire := Call{Op: Acquire, TTL: "60000", Hint: "5", Skew: "2000000", Sequence: once}
	release := func(what Outcome) Call { return Call{Op: Release, Keep: "0", Sequence: once, Record: what} }
	for _, record := range []string{
		"2 " + thisProcess + " 5 1 0 4 10 20 4 1 a b   " + someOwner, "2 x", "2 ", "10  5 1 0 4 0 1 4 1   " + someOwner, "999 " + someOwner,
	} {
		version, _, _ := strings.Cut(record, " ")
		for name, test := range map[string]struct {
			call  Call
			held  bool
			want  Answer
			fails bool
		}{
			"acquired":             {acquire, false, Answer{}, true},
			"acquired again":       {acquire, true, Answer{}, true},
			"recalled":             {Call{Op: Recall}, false, Answer{}, true},
			"restored":             {Call{Op: Restore, Write: &Write{Process: thisProcess, Known: "1  5 1 0 4 10 20 4 1 a b   x", Lifetime: "3600000"}}, false, Answer{}, true},
			"extended":             {Call{Op: Extend, TTL: "60000", Token: 5, Sequence: once, Spread: "1"}, true, Answer{Verdict: OK, Extended: InPlace}, false},
			"put back":             {Call{Op: Extend, TTL: "60000", Token: 5, Sequence: once}, false, Answer{Verdict: OK, Extended: Refilled}, false},
			"completed":            {release(Done), true, Answer{Verdict: OK, Unwritten: true}, false},
			"completed by the way": {release(Done), false, Answer{Verdict: Refused, Unwritten: true}, false},
			"taken back":           {release(Undo), true, Answer{Verdict: OK, Unwritten: true}, false},
			"released":             {release(Keep), true, Answer{Verdict: OK}, false},
		} {
			what := name + ": " + record
			require.NoError(t, n.Do(t, "FLUSHALL").Error())
			require.NoError(t, n.Do(t, "SET", k.Record(), record, "PX", "7200000").Error())
			if test.held {
				require.NoError(t, n.Do(t, "SET", k.Lock, "5 "+someOwner, "PX", "60000").Error())
			}
			g := NewSet(thisProcess)
			c := test.call
			c.Keys, c.Lock = k, "5 "+someOwner
			got := ask(t, n.Client(), g, &c)[0]
			require.Equal(t, test.want, got.Answer, what)
			if test.fails {
				require.EqualError(t, got.Err, "TENUREVERSION the record has version "+version+", and this library knows 1", what)
				held, err := n.Do(t, "EXISTS", k.Lock, k.Fences).AsInt64()
				require.NoError(t, err)
				require.Equal(t, map[bool]int64{true: 1}[test.held], held, what)
			} else {
				require.NoError(t, got.Err, what)
			}
			text, err := n.Do(t, "GET", k.Record()).ToString()
			require.NoError(t, err, what)
			require.Equal(t, record, text, what)
			left, err := n.Do(t, "PTTL", k.Record()).AsInt64()
			require.NoError(t, err)
			require.InDelta(t, 7_200_000, left, 600_000, what)
		}
	}
}

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
