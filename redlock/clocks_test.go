package redlock

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A server that says that it has counted to what no clock shows is not believed.
func TestInventedCounterIsNotFollowed(t *testing.T) {
	m := testQuorum(1).nodes[0]
	call := &wire.Call{Op: wire.Acquire, Keys: &wire.Keys{Name: "k", Lock: "{k}", Fences: "{k}:fence", Slot: "7"}}
	server := time.Duration(time.Now().UnixNano())
	for _, test := range []struct {
		lead time.Duration
		sane bool
	}{{0, true}, {time.Hour, true}, {23 * time.Hour, true}, {25 * time.Hour, false}, {1000 * time.Hour, false}} {
		rep := m.Reply(call, node.Answer{Answer: wire.Answer{Verdict: wire.OK, Server: server, Token: uint64((server + test.lead).Microseconds())}})
		require.Equal(t, test.sane, rep.Err == nil, "%v: %v", test.lead, rep.Err)
		require.Equal(t, test.sane, rep.Verdict == wire.OK)
		if !test.sane {
			require.True(t, wire.IsServerError(rep.Err), "the connection is well")
			require.ErrorContains(t, rep.Err, "{k}:fence 7")
		}
	}
}

// Whatever a client takes the time for, a server lifts no counter beyond its own clock and the
// skew.
func TestServerHoldsAHintToItsClock(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	const skew = 2 * time.Second
	for name, test := range map[string]struct{ hint, most time.Duration }{
		"an hour ahead": {time.Hour, skew}, "within the skew": {time.Second, time.Second}, "an hour behind": {-time.Hour, -time.Hour},
	} {
		k := &wire.Keys{Lock: "{" + name + "}", Fences: "{" + name + "}:fence", Slot: "7"}
		before := time.Now()
		rep := ask(t, n.Client(), &wire.Call{Op: wire.Acquire, Keys: k, Lock: wire.Lock(strconv.FormatInt(before.Add(test.hint).UnixMicro(), 10), "owner"), TTL: "60000",
			Hint: strconv.FormatInt(before.Add(test.hint).UnixMicro(), 10), Skew: strconv.FormatInt(skew.Microseconds(), 10)})[0]
		require.NoError(t, rep.Err)
		require.GreaterOrEqual(t, rep.Token, uint64(before.Add(test.most).UnixMicro()), name)
		require.LessOrEqual(t, rep.Token, uint64(time.Now().Add(test.most).UnixMicro()), name)
	}
}

// ask has a server carry out calls in one command.
func ask(t testing.TB, client valkey.Client, calls ...*wire.Call) []wire.Result {
	command := new(wire.Buffers).Encode(client, calls, &wire.Target{Vouched: true, Whole: true})
	return wire.Decode(calls, client.Do(t.Context(), command), nil)
}

// The widest skew that any process uses is used for all that the own one is for.
func TestSkewOfOthers(t *testing.T) {
	q := testQuorum(3)
	own := q.cfg.clockSkew
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, q.cfg.ownSkew, q.cfg.skewText())
	was := q.cfg.quarantine()
	q.cfg.others.learn(1, 0, 20*time.Second)
	require.Equal(t, 20*time.Second, q.cfg.skew())
	require.Equal(t, "20000000", q.cfg.skewText())
	require.Greater(t, q.cfg.quarantine(), was)
	q.cfg.others.learn(1, 0, own/2)
	require.Equal(t, own, q.cfg.skew())
	require.Equal(t, was, q.cfg.quarantine())
}
