package storm_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/chaos/arena"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
	"github.com/tenure-dev/tenure/tools/chaos/schedule"
	"github.com/tenure-dev/tenure/tools/soak/cast"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/storm"
	"github.com/tenure-dev/tenure/tools/soak/story"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

func TestMain(m *testing.M) {
	if os.Getenv(cast.Variable) != "" {
		os.Exit(cast.Main(os.Stdin, os.Stdout, func(*cast.Role) (func() error, error) { return func() error { return nil }, nil }))
	}
	// toxiproxy leaves goroutines behind, see package arena of the chaos program.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}

func TestEveryFaultHappens(t *testing.T) {
	place, err := arena.New(1)
	require.NoError(t, err)
	defer place.Close()
	dir := t.TempDir()
	players, err := cast.New(2, dir, func(int) any { return nil })
	require.NoError(t, err)
	defer players.Close()
	require.NoError(t, players.StartAll())
	strikes, err := journal.Create(dir, "strikes")
	require.NoError(t, err)
	defer strikes.Close()
	var out bytes.Buffer
	asked := make(chan time.Time, 1)
	s := &storm.Storm{Arena: place, Cast: players, Replicas: 2, Strikes: strikes, Out: &out, Clock: func(int) time.Time {
		now := time.Now()
		asked <- now
		return now
	}}
	ms := time.Millisecond
	require.NoError(t, s.Run(context.Background(), []plan.Fault{
		{At: 1 * ms, For: 100 * ms, Kind: plan.RestartKeep},
		{At: 2 * ms, For: 100 * ms, Kind: plan.Freeze, Target: 1},
		{At: 3 * ms, For: 50 * ms, Kind: plan.Kill, Target: 0},
		{At: 500 * ms, Kind: plan.Roll, Target: 0},
		{At: 500 * ms, For: 50 * ms, Kind: plan.RestartEmpty},
		{At: 600 * ms, For: 50 * ms, Kind: plan.FreezeServer},
		{At: 900 * ms, For: 50 * ms, Kind: plan.Blackout},
		{At: 1100 * ms, Kind: plan.RollAtTick, Target: 1, Offset: -20 * ms},
		{At: 4000 * ms, Kind: plan.Deploy},
	}))
	require.Contains(t, out.String(), "all replicas")
	got, err := journal.Read[story.Strike](filepath.Join(dir, "strikes"+journal.Suffix))
	require.NoError(t, err)
	lives := make(map[string][]string)
	for _, strike := range got {
		lives[strike.Kind] = append(lives[strike.Kind], strike.Life)
		require.Less(t, strike.From, strike.To)
		if strike.Kind == string(plan.RollAtTick) {
			now := <-asked
			tick := now.Add(20 * ms).Truncate(work.Beat).Add(work.Beat - 20*ms)
			require.GreaterOrEqual(t, strike.From, journal.Now().Add(-time.Since(tick)-ms), "it waits for the tick")
		}
	}
	require.ElementsMatch(t, []string{"r0.2", "r0.4", "r1.3"}, lives["roll"], "two of the deploy")
	delete(lives, "roll")
	require.Equal(t, map[string][]string{
		"restart-keep": {""}, "restart-empty": {""}, "freeze-server": {""}, "freeze": {"r1.1"}, "kill": {"r0.1"}, "blackout": {""},
		"roll-at-tick": {"r1.2"}, "deploy": {""},
	}, lives)
	killed := make(map[string]bool)
	for _, life := range players.Close() {
		killed[life.Name] = life.Killed != 0
	}
	require.Equal(t, map[string]bool{
		"r0.1": true, "r0.2": false, "r0.3": true, "r0.4": false, "r0.5": true,
		"r1.1": true, "r1.2": false, "r1.3": false, "r1.4": true,
	}, killed)
}

func TestKeysThatAreLeft(t *testing.T) {
	const ttl = redlock.MinTTL
	place, err := arena.New(1)
	require.NoError(t, err)
	defer place.Close()
	q, err := redlock.Open(place.URLs(schedule.Left), redlock.WithTTL(ttl), redlock.WithPrefix("p"), redlock.WithIdentity("r0.1"))
	require.NoError(t, err)
	defer q.Close()
	left := func(killed journal.Instant) []string {
		found, err := storm.Leftover(place, "p", ttl, []journal.Life{{Name: "r0.1", Killed: killed}})
		require.NoError(t, err)
		return found
	}
	require.Empty(t, left(0))
	acquire := func(opts ...redlock.LeaseOption) *redlock.Lease {
		l, err := q.Acquire(t.Context(), "key", opts...)
		require.NoError(t, err)
		return l
	}
	l := acquire(redlock.WithoutAutoExtend())
	require.Equal(t, []string{"server 1: p:{key} of r0.1"}, left(0), "of a life that was stopped, before its TTL")
	require.NoError(t, l.Release(t.Context()))
	l = acquire()
	require.Len(t, left(1), 1, "of one that was killed, extended beyond its TTL")
	require.NoError(t, l.Release(t.Context()))
	l = acquire(redlock.WithoutAutoExtend())
	defer l.Release(context.Background())
	require.Empty(t, left(1), "of one that was killed, gone after its TTL")
}
