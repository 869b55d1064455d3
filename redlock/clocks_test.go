package redlock

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A slow answer leaves open what a server's clock shows, and is no wrong clock; nor is one that was
// asked long ago, which then says nothing of the median either.
func TestSlowAnswerIsNoWrongClock(t *testing.T) {
	cfg, err := newConfig(nil)
	require.NoError(t, err)
	c := newServerClocks(cfg, 3)
	const start = clock.Instant(time.Hour)
	sample := func(i int, at clock.Instant, lo, hi time.Duration) {
		c.sampled(i, "n:1", node.Watch{Lo: lo, Hi: hi, At: at, Known: true})
	}
	wall := time.Unix(0, 0).Add(time.Hour)
	require.Zero(t, c.hint(start, wall))
	sample(0, start, 0, 0)
	require.Zero(t, c.hint(start, wall), "one of three is no quorum")
	sample(1, start, 0, 0)
	require.EqualValues(t, time.Hour.Microseconds(), c.hint(start, wall))
	require.EqualValues(t, (time.Hour + cfg.clockSkew).Microseconds(), c.hint(start, wall.Add(time.Hour)))
	require.EqualValues(t, (time.Hour - cfg.clockSkew).Microseconds(), c.hint(start, wall.Add(-time.Hour)))
	require.EqualValues(t, (time.Hour - cfg.clockSkew).Microseconds(), c.leastToken(start))
	later := start
	for _, hi := range []time.Duration{2 * time.Second, time.Minute} {
		sample(2, later, 2*time.Second, hi)
		require.Nil(t, c.warning(2), "it may be right")
		later = later.Add(compareEvery)
	}
	sample(2, later, 2*time.Second+10*time.Millisecond, time.Minute)
	require.ErrorContains(t, c.warning(2), "ahead of the median of 3 servers")
	require.Nil(t, c.warning(0))
	sample(2, later.Add(compareEvery), -time.Minute, -2*time.Second-10*time.Millisecond)
	require.ErrorContains(t, c.warning(2), "behind the median of 3 servers")

	muchLater := later.Add(time.Hour)
	require.Zero(t, c.hint(muchLater, wall))
	require.Zero(t, c.leastToken(muchLater))
	sample(0, muchLater, 5*time.Minute, 5*time.Minute)
	require.Nil(t, c.warning(0), "there is nobody to compare it with")
	require.Zero(t, c.hint(muchLater, wall))
}

// A server that says that it has counted to what no clock shows is not believed.
func TestInventedCounterIsNotFollowed(t *testing.T) {
	m := testQuorum(1).nodes[0]
	call := &wire.Call{Op: wire.Acquire, Keys: &wire.Keys{Name: "k", Lock: "{k}", Fence: "{k}:fence"}}
	server := time.Duration(time.Now().UnixNano())
	for _, test := range []struct {
		lead time.Duration
		sane bool
	}{{0, true}, {time.Hour, true}, {23 * time.Hour, true}, {25 * time.Hour, false}, {1000 * time.Hour, false}} {
		rep := m.reply(call, node.Answer{Answer: wire.Answer{Verdict: wire.OK, Server: server, Token: uint64((server + test.lead).Microseconds())}})
		require.Equal(t, test.sane, rep.Err == nil, "%v: %v", test.lead, rep.Err)
		require.Equal(t, test.sane, rep.Verdict == wire.OK)
		if !test.sane {
			require.True(t, wire.IsServerError(rep.Err), "the connection is well")
			require.ErrorContains(t, rep.Err, "{k}:fence")
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
		k := &wire.Keys{Lock: "{" + name + "}", Fence: "{" + name + "}:fence", Wait: "{" + name + "}:wait"}
		before := time.Now()
		rep := ask(t, n.Client(), wire.AnyProcess, &wire.Call{Op: wire.Acquire, Keys: k, Owner: "owner", TTL: "60000",
			Hint: strconv.FormatInt(before.Add(test.hint).UnixMicro(), 10), Skew: strconv.FormatInt(skew.Microseconds(), 10)})[0]
		require.NoError(t, rep.Err)
		require.GreaterOrEqual(t, rep.Token, uint64(before.Add(test.most).UnixMicro()), name)
		require.LessOrEqual(t, rep.Token, uint64(time.Now().Add(test.most).UnixMicro()), name)
	}
}

// ask has a server carry out calls in one command.
func ask(t testing.TB, client valkey.Client, g *wire.Set, calls ...*wire.Call) []wire.Result {
	var loads valkey.Commands
	for _, s := range g.Scripts() {
		loads = append(loads, wire.LoadCommand(client, s))
	}
	for _, result := range client.DoMulti(t.Context(), loads...) {
		require.NoError(t, result.Error())
	}
	command := new(wire.Buffers).Encode(client, calls, g, "")
	return wire.Decode(calls, client.Do(t.Context(), command), 0, nil)
}
