package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/plan"
)

var cfg = plan.Config{
	Duration: 2 * time.Minute, Servers: 5, Clients: 8, Keys: 4, TTL: 2 * time.Second, Recovery: 5 * time.Second,
}

func TestSeedDeterminesAll(t *testing.T) {
	require.Equal(t, plan.Leases(7, cfg), plan.Leases(7, cfg))
	require.NotEqual(t, plan.Leases(7, cfg), plan.Leases(8, cfg))
	// A change of this text changes what every recorded seed stands for.
	require.Equal(t, firstFaultOfSeed7, plan.Leases(7, cfg)[0].String())
}

const firstFaultOfSeed7 = "   0.397s  freeze-server  server 5, for 3.459s"

// light are the faults that leave a server useful.
func light(f plan.Fault) bool {
	switch f.Kind {
	case plan.ScriptFlush, plan.SlowClose:
		return true
	case plan.Latency:
		return f.Amount <= 60*time.Millisecond
	case plan.Bandwidth:
		return f.Rate >= 8
	}
	return false
}

func recovery(f plan.Fault) time.Duration {
	switch f.Kind {
	case plan.RestartEmpty, plan.RestartKeep, plan.ClockForward, plan.ClockBack:
		return cfg.Recovery
	case plan.FlushAll:
		return cfg.TTL
	}
	return 0
}

// target is what a fault strikes.
type target struct {
	server int
	links  bool
}

func TestRules(t *testing.T) {
	kinds := make(map[plan.Kind]int)
	parts := make(map[string]bool)
	for seed := range uint64(50) {
		faults := plan.Leases(seed, cfg)
		require.Greater(t, len(faults), 100)
		require.True(t, slices.IsSortedFunc(faults, func(a, b plan.Fault) int { return int(a.At - b.At) }))
		busy := make(map[target]time.Duration)
		until := make([]time.Duration, cfg.Servers) // impaired by what is not light and no episode
		for _, f := range faults {
			kinds[f.Kind]++
			require.NotEmpty(t, f.String())
			require.LessOrEqual(t, f.At+f.For, cfg.Duration, f)
			require.GreaterOrEqual(t, f.For, time.Duration(0), f)
			if f.Kind.OnHolder() || f.Kind.OnOne() {
				require.Less(t, f.Client, cfg.Clients)
				require.Less(t, f.Key, cfg.Keys)
				require.Empty(t, f.Servers)
				continue
			}
			if f.Part != "" {
				name, _, _ := strings.Cut(f.Part, " at ")
				parts[name] = true
			}
			require.NotEmpty(t, f.Servers, f)
			for _, n := range f.Servers {
				well := busy[target{n, f.Kind.OnLink()}]
				if !strings.HasPrefix(f.Part, "quorum forgets") {
					well = max(busy[target{n, true}], busy[target{n, false}])
				}
				require.GreaterOrEqual(t, f.At, well, "%s begins before server %d is well", f, n+1)
				well = f.At + f.For + recovery(f)
				busy[target{n, f.Kind.OnLink()}] = well
				if f.Part == "" && !light(f) {
					until[n] = well
				}
			}
			impaired := 0
			for _, u := range until {
				if u > f.At {
					impaired++
				}
			}
			require.LessOrEqual(t, impaired, (cfg.Servers-1)/2, "at %s", f)
		}
	}
	for _, kind := range []plan.Kind{
		plan.RestartKeep, plan.RestartEmpty, plan.FreezeServer, plan.ScriptFlush, plan.FlushAll,
		plan.ClockForward, plan.ClockBack, plan.Cut, plan.BlackHole, plan.DropRequests,
		plan.DropReplies, plan.Latency, plan.Bandwidth, plan.SlowClose, plan.Kill,
		plan.KillHolder, plan.Freeze, plan.FreezeHolder, plan.Roll,
	} {
		require.Greater(t, kinds[kind], 10, kind)
	}
	require.Equal(t, map[string]bool{"quorum lost": true, "quorum forgets": true, "division": true, "one after the other": true}, parts)
}

// A run of half a minute, as on every change, has the episode that a lock without a restart gate
// does not survive.
func TestShortRunsLoseTheMemoryOfAQuorum(t *testing.T) {
	short := cfg
	short.Duration = 30 * time.Second
	for seed := range uint64(100) {
		empty := 0
		for _, f := range plan.Leases(seed, short) {
			if f.Kind == plan.RestartEmpty && f.Part != "" {
				empty++
			}
		}
		require.GreaterOrEqual(t, empty, 3, "seed %d", seed)
	}
}
