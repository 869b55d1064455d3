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
	call := &wire.Call{Op: wire.Acquire, Keys: &wire.Keys{Name: "k", Lock: "{k}", Fences: "{k}:fence", Slot: "7"}}
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
		rep := ask(t, n.Client(), wire.AnyProcess, &wire.Call{Op: wire.Acquire, Keys: k, Lock: wire.Lock(strconv.FormatInt(before.Add(test.hint).UnixMicro(), 10), "owner"), TTL: "60000",
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
	command := new(wire.Buffers).Encode(client, calls, g, "0")
	return wire.Decode(calls, client.Do(t.Context(), command), "0", nil)
}

// What nodes say of the median where it is not sure is taken for no more than a choice between the
// clocks that it may be at.
func TestToldMedianIsBetweenTheClocks(t *testing.T) {
	const behind = -time.Hour
	for told, want := range map[time.Duration]time.Duration{
		-10000 * time.Hour: 0,
		behind:             0,
		behind / 2:         behind / 2,
		0:                  behind,
		10000 * time.Hour:  behind,
	} {
		q := testQuorum(3)
		c, now := q.clocks, clock.Instant(time.Hour)
		c.sampled(0, "a:1", node.Watch{Known: true, At: now})
		c.sampled(1, "b:1", node.Watch{Known: true, At: now, Lo: behind, Hi: behind})
		lower, upper := c.median(now)
		require.Equal(t, behind, lower.lo)
		require.False(t, lower.sure)
		require.Zero(t, upper.lo)
		c.tell(1, &told, now)
		lower, upper = c.median(now)
		require.True(t, lower.told)
		require.Equal(t, bounds{want, want}, lower.bounds, "told %v", told)
		require.Equal(t, lower.bounds, upper)
		require.Equal(t, make([]*time.Duration, 3), c.leadOfEach(now), "who is not sure tells nobody")

		c.sampled(2, "c:1", node.Watch{Known: true, At: now})
		leads := c.leadOfEach(now)
		require.Equal(t, []time.Duration{0, behind, 0}, []time.Duration{*leads[0], *leads[1], *leads[2]})
		lower, _ = c.median(now)
		require.Equal(t, middle{at: now, known: 3, sure: true}, lower)
	}
}
