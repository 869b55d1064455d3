package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/plan"
)

const duration = 5 * time.Minute

func five(t *testing.T) plan.Topology {
	t.Helper()
	found, err := plan.Find("five")
	require.NoError(t, err)
	return found
}

func TestSeedDeterminesTheFaultsOfJobs(t *testing.T) {
	for _, where := range plan.Topologies() {
		require.Equal(t, plan.Jobs(1, where, duration), plan.Jobs(1, where, duration))
		require.NotEqual(t, plan.Jobs(1, where, duration), plan.Jobs(2, where, duration))
	}
	require.Equal(t, plan.Skews(1, 5, time.Second), plan.Skews(1, 5, time.Second))
	require.NotEqual(t, plan.Skews(1, 5, time.Second), plan.Skews(2, 5, time.Second))
	require.Equal(t, plan.Leaps(1, five(t), 5, duration), plan.Leaps(1, five(t), 5, duration))
	require.NotEqual(t, plan.Leaps(1, five(t), 5, duration), plan.Leaps(2, five(t), 5, duration))
}

func TestTopologies(t *testing.T) {
	for _, name := range plan.Names() {
		found, err := plan.Find(name)
		require.NoError(t, err)
		require.Equal(t, name, found.Name)
	}
	_, err := plan.Find("six")
	require.ErrorContains(t, err, "there are five, three, far, memory")
}

func TestEveryKindHappens(t *testing.T) {
	for _, where := range plan.Topologies() {
		want := slices.Concat(where.Kinds, where.Restarts)
		if where.Blackouts > 0 {
			want = append(want, plan.Blackout)
		}
		if where.Deploys > 0 {
			want = append(want, plan.Deploy)
		}
		if where.Pauses > 0 {
			want = append(want, plan.Pause)
		}
		if where.Freezes > 0 {
			want = append(want, plan.FreezeServer)
		}
		got := make(map[plan.Kind]int)
		for seed := range uint64(20) {
			for _, f := range plan.Jobs(seed, where, duration) {
				got[f.Kind]++
				require.NotEmpty(t, f.String())
			}
		}
		for _, kind := range want {
			require.Greater(t, got[kind], 9, "%s: %s", where.Name, kind)
		}
		for kind := range got {
			require.Contains(t, want, kind)
		}
	}
}

// Servers are restarted one at a time, a quarantine apart, and none is frozen that is away. Faults
// of one replica do not meet, and no more than three replicas are away at a time, but for faults of
// all.
func TestBounds(t *testing.T) {
	type span struct {
		from, to time.Duration
		server   int
	}
	for _, where := range plan.Topologies() {
		for seed := range uint64(50) {
			var restarted time.Duration
			var down []span
			turn, paused := 0, make([]time.Duration, plan.PausedJobs)
			busy := make([]time.Duration, plan.Replicas)
			for _, f := range plan.Jobs(seed, where, duration) {
				require.LessOrEqual(t, f.At+f.For, duration)
				switch {
				case f.Kind == plan.FreezeServer:
					require.Less(t, f.Servers[0], where.Servers)
					for _, s := range down {
						require.False(t, s.server == f.Servers[0] && s.from < f.At+f.For && f.At < s.to, "seed %d: %s", seed, f)
					}
					continue
				case f.Kind.OnServer(), f.Kind.OnLink():
					require.Less(t, f.Servers[0], where.Servers)
					require.GreaterOrEqual(t, f.At, restarted, "seed %d: %s", seed, f)
					require.LessOrEqual(t, f.For, where.Outage)
					restarted = f.At + f.For + plan.Recovery
					down = append(down, span{f.At, f.At + f.For, f.Servers[0]})
					if where.InTurn {
						require.Equal(t, turn%where.Servers, f.Servers[0])
						turn++
					}
					continue
				case f.Kind == plan.Pause:
					require.GreaterOrEqual(t, f.At, paused[f.Key], "seed %d: %s", seed, f)
					paused[f.Key] = f.At + f.For
					continue
				case f.Kind.OnAll():
					for i := range busy {
						require.LessOrEqual(t, busy[i], f.At)
						busy[i] = f.At + f.For
					}
					continue
				}
				require.LessOrEqual(t, busy[f.Client], f.At, "seed %d: %s", seed, f)
				busy[f.Client] = f.At + f.For
				away := 0
				for _, until := range busy {
					if until > f.At {
						away++
					}
				}
				require.LessOrEqual(t, away, 3)
				switch f.Kind {
				case plan.Freeze:
					require.True(t, f.For >= 300*time.Millisecond && f.For <= 6*time.Second)
				case plan.RollAtTick:
					require.LessOrEqual(t, f.Amount.Abs(), 30*time.Millisecond+where.Distance)
				}
			}
		}
	}
}

// Sometimes all servers that are there are frozen at once: longer than a node timeout, and shorter
// than there is time to try again.
func TestStallsOfAllServers(t *testing.T) {
	where := five(t)
	where.Restarts = nil
	at := make(map[time.Duration][]plan.Fault)
	for _, f := range plan.Jobs(7, where, duration) {
		if f.Kind == plan.FreezeServer {
			at[f.At] = append(at[f.At], f)
		}
	}
	stalls := 0
	for _, faults := range at {
		if len(faults) == 1 {
			continue
		}
		require.Len(t, faults, where.Servers)
		require.LessOrEqual(t, faults[0].For, 900*time.Millisecond)
		stalls++
	}
	require.NotZero(t, stalls)
	where.Everywhere = false
	at = make(map[time.Duration][]plan.Fault)
	for _, f := range plan.Jobs(7, where, duration) {
		if f.Kind == plan.FreezeServer {
			require.Empty(t, at[f.At])
			at[f.At] = append(at[f.At], f)
		}
	}
	require.NotEmpty(t, at)
}

func TestOnlyWhatIsAskedFor(t *testing.T) {
	where := plan.Topology{Servers: 5, Kinds: []plan.Kind{plan.Roll}, Gap: time.Second}
	faults := plan.Jobs(3, where, duration)
	require.NotEmpty(t, faults)
	for _, f := range faults {
		require.Equal(t, plan.Roll, f.Kind)
	}
	require.Empty(t, plan.Jobs(3, plan.Topology{Servers: 5}, duration))
}

func TestSkews(t *testing.T) {
	skews := plan.Skews(9, 5, time.Second)
	require.Len(t, skews, 5)
	require.Equal(t, []time.Duration{time.Second, -time.Second}, skews[:2])
	for _, s := range skews {
		require.LessOrEqual(t, s.Abs(), time.Second)
	}
}

// Each leap is taken back, so that a clock is wrong by one at a time.
func TestLeaps(t *testing.T) {
	where := five(t)
	forward, back := 0, 0
	for _, leaps := range plan.Leaps(3, where, plan.Replicas, duration) {
		require.NotEmpty(t, leaps)
		var wrong, last time.Duration
		for i, l := range leaps {
			require.GreaterOrEqual(t, l.At, last)
			last = l.At
			if wrong += l.By; i%2 == 1 {
				require.Zero(t, wrong)
				continue
			}
			require.NotZero(t, wrong)
			require.LessOrEqual(t, wrong.Abs(), 1500*time.Millisecond)
			if wrong > 0 {
				forward++
			} else {
				back++
			}
		}
	}
	require.NotZero(t, forward)
	require.NotZero(t, back)
	right := plan.SetRight([]plan.Leap{{At: 1, By: 3}, {At: 9, By: -3}}, 5, 7)
	require.Equal(t, []plan.Leap{{At: 1, By: 3}, {At: 5, By: -7}, {At: 9, By: -3}}, right)
	where.Leaps = false
	for _, leaps := range plan.Leaps(3, where, plan.Replicas, duration) {
		require.Empty(t, leaps)
	}
}

func TestDistances(t *testing.T) {
	where := plan.Topology{Servers: 3, Distance: 10 * time.Millisecond, Near: time.Millisecond}
	far, near := where.Distance, where.Near
	require.Equal(t, [][]time.Duration{{near, far, far}, {far, near, far}, {far, far, near}, {near, far, far}}, where.Distances(4))
	where.Distance = 0
	require.Nil(t, where.Distances(4))
}
