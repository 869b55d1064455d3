package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/plan"
)

const (
	duration = 5 * time.Minute
	ms       = time.Millisecond
)

func find(t *testing.T, name string) plan.Topology {
	t.Helper()
	found, err := plan.Find(name)
	require.NoError(t, err)
	require.Equal(t, name, found.Name)
	return found
}

func TestSeedDeterminesTheFaults(t *testing.T) {
	for _, where := range plan.Topologies() {
		faults := plan.Faults(1, where, duration)
		require.Equal(t, faults, plan.Faults(1, where, duration))
		require.Equal(t, where.Name == "calm", len(faults) == 0)
		if len(faults) > 0 {
			require.NotEqual(t, faults, plan.Faults(2, where, duration))
		}
		require.True(t, slices.IsSortedFunc(faults, func(a, b plan.Fault) int { return int(a.At - b.At) }))
	}
	// A change of this text changes what every recorded seed stands for.
	require.Equal(t, firstFaultOfSeed7, plan.Faults(7, find(t, "leases"), duration)[0].String())
	_, err := plan.Find("six")
	require.ErrorContains(t, err, "there are leases, five, three, far, memory, calm")
}

const firstFaultOfSeed7 = "   2.172s  restart-keep   server [0], both sides, by 0s, for 309ms  ()"

// A run of a minute has every kind of its topology now and then, and all episodes of leases come.
func TestEveryKindHappens(t *testing.T) {
	parts := make(map[string]bool)
	for _, where := range plan.Topologies() {
		got := make(map[plan.Kind]int)
		for seed := range uint64(200) {
			for _, f := range plan.Faults(seed, where, time.Minute) {
				got[f.Kind]++
				part, _, _ := strings.Cut(f.Part, " at ")
				parts[part] = true
			}
		}
		want := make(map[plan.Kind]bool)
		for _, s := range where.Streams {
			for _, kind := range s.Kinds {
				want[kind] = true
			}
		}
		if want[plan.Episode] {
			delete(want, plan.Episode)
			want[plan.Expire] = true
		}
		for kind := range want {
			require.Greater(t, got[kind], 9, "%s: %s", where.Name, kind)
		}
		require.Len(t, got, len(want))
	}
	require.Equal(t, map[string]bool{
		"": true, "quorum lost": true, "quorum forgets": true, "division": true, "certificates": true, "one after the other": true,
	}, parts)
}

// Faults of one target do not meet, but for those of a server and its links where a quorum forgets.
// Of what a stream bounds no more are struck, or not well again, at a time.
func TestBounds(t *testing.T) {
	for _, where := range plan.Topologies() {
		most := map[plan.Target]int{plan.Server: 1, plan.Client: 3}
		if !where.Jobs {
			most = map[plan.Target]int{plan.Server: 2, plan.Client: 6}
		}
		for seed := range uint64(30) {
			busy, away := make(map[string]time.Duration), make(map[string]time.Duration)
			for _, f := range plan.Faults(seed, where, duration) {
				require.LessOrEqual(t, f.At+f.For, duration)
				require.NotEmpty(t, f.Targets)
				require.NotEmpty(t, f.String())
				on := f.Kind.On()
				for _, turn := range f.Turns() {
					require.GreaterOrEqual(t, f.At, busy[turn], "seed %d: %s", seed, f)
					busy[turn] = f.At + f.For
					restart := f.Kind == plan.RestartEmpty || f.Kind == plan.RestartKeep
					if f.Part != "" || on == plan.Server && where.Jobs && !restart {
						continue
					}
					away[turn] = f.At + f.For
					if restart {
						away[turn] += plan.Recovery
					}
				}
				gone := 0
				for turn, until := range away {
					if strings.HasPrefix(turn, string(on)+" ") && until > f.At {
						gone++
					}
				}
				if most[on] > 0 && len(f.Targets) == 1 && f.Part == "" && f.Kind != plan.FreezeServer && f.Kind != plan.ScriptFlush {
					require.LessOrEqual(t, gone, most[on], "seed %d: %s", seed, f)
				}
			}
		}
	}
}

// Sometimes all servers that are there are frozen at once: longer than a node timeout, and shorter
// than there is time to try again.
func TestStallsOfAllServers(t *testing.T) {
	stalls := 0
	for _, f := range plan.Faults(7, find(t, "far"), duration) {
		if f.Kind == plan.FreezeServer && len(f.Targets) > 1 {
			require.LessOrEqual(t, f.For, 900*ms)
			stalls++
		}
	}
	require.NotZero(t, stalls)
}

func TestServersInTurn(t *testing.T) {
	var struck []int
	for _, f := range plan.Faults(7, find(t, "memory"), duration) {
		if f.Kind == plan.RestartEmpty {
			struck = append(struck, f.Targets[0])
		}
	}
	require.Greater(t, len(struck), 10)
	for i := range struck[3:] {
		require.Equal(t, struck[i], struck[i+3])
	}
}

// A run of half a minute, as on every change, has the episode that a lock without a restart gate
// does not survive; one of a minute has certificates that expire, for long enough to be judged.
func TestShortRunsLoseTheMemoryOfAQuorum(t *testing.T) {
	expiries := 0
	for seed := range uint64(100) {
		empty := 0
		for _, f := range plan.Faults(seed, find(t, "leases"), time.Minute) {
			if f.Kind == plan.RestartEmpty && f.Part != "" && f.At < 30*time.Second {
				empty++
			}
			if f.Kind == plan.Expire {
				require.Len(t, f.Targets, 5)
				require.GreaterOrEqual(t, f.For, 6*time.Second)
				expiries++
			}
		}
		require.GreaterOrEqual(t, empty, 3, "seed %d", seed)
	}
	require.GreaterOrEqual(t, expiries, 95)
}

// The first clock is ahead by most, the second behind. Each leap is taken back, so that a clock is
// wrong by one at a time; and those of the first two are set right.
func TestClock(t *testing.T) {
	where := find(t, "five")
	for client := range where.Clients {
		ahead, leaps := plan.Clock(9, where, client, duration)
		require.LessOrEqual(t, ahead.Abs(), plan.MaxAhead)
		again, same := plan.Clock(9, where, client, duration)
		require.Equal(t, ahead, again)
		require.Equal(t, leaps, same)
		require.True(t, slices.IsSortedFunc(leaps, func(a, b plan.Leap) int { return int(a.At - b.At) }))
		sum := time.Duration(0)
		for _, l := range leaps {
			require.LessOrEqual(t, l.By.Abs(), 1500*ms)
			sum += l.By
		}
		require.NotEmpty(t, leaps)
		if client < 2 {
			require.Equal(t, []time.Duration{plan.MaxAhead, -plan.MaxAhead}[client], ahead)
			require.Contains(t, leaps, plan.Leap{At: duration / 2, By: -ahead})
			sum += ahead
		}
		require.Zero(t, sum)
	}
	_, leaps := plan.Clock(9, find(t, "far"), 0, duration)
	require.Empty(t, leaps)
}

func TestDistances(t *testing.T) {
	where := find(t, "three")
	far, near := where.Distance, where.Near
	require.Equal(t, []time.Duration{far, near, far}, where.Distances(1))
	require.Equal(t, []time.Duration{near, far, far}, where.Distances(3))
}
