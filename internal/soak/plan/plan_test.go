package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/soak/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var config = plan.Config{
	Duration: 5 * time.Minute, Replicas: 5, Servers: 5, Recovery: 6 * time.Second,
	Kinds: []plan.Kind{plan.Kill, plan.Freeze, plan.Roll}, Blackout: 40 * time.Second,
}

func TestSeedDeterminesThePlan(t *testing.T) {
	require.Equal(t, plan.Plan(1, config), plan.Plan(1, config))
	require.NotEqual(t, plan.Plan(1, config), plan.Plan(2, config))
	require.Equal(t, plan.Skews(1, 5, time.Second), plan.Skews(1, 5, time.Second))
	require.NotEqual(t, plan.Skews(1, 5, time.Second), plan.Skews(2, 5, time.Second))
}

func TestEveryKindHappens(t *testing.T) {
	for seed := range uint64(20) {
		kinds := make(map[plan.Kind]int)
		for _, f := range plan.Plan(seed, config) {
			kinds[f.Kind]++
			require.NotEmpty(t, f.String())
		}
		for _, kind := range []plan.Kind{plan.Kill, plan.Freeze, plan.Roll, plan.Blackout, plan.RestartKeep, plan.RestartEmpty} {
			require.NotZero(t, kinds[kind], "seed %d: %s", seed, kind)
		}
		require.Len(t, kinds, 6)
	}
}

// Servers are restarted one at a time, a quarantine apart. Faults of one replica do not meet, and no more than three replicas are away at a time.
func TestBounds(t *testing.T) {
	for seed := range uint64(50) {
		var server time.Duration
		busy := make([]time.Duration, config.Replicas)
		for _, f := range plan.Plan(seed, config) {
			require.LessOrEqual(t, f.At+f.For, config.Duration)
			switch {
			case f.Kind.OnServer():
				require.GreaterOrEqual(t, f.At, server, "seed %d: %s", seed, f)
				server = f.At + f.For + config.Recovery
				continue
			case f.Kind == plan.Blackout:
				for i := range busy {
					require.LessOrEqual(t, busy[i], f.At)
					busy[i] = f.At + f.For
				}
				continue
			}
			require.LessOrEqual(t, busy[f.Target], f.At, "seed %d: %s", seed, f)
			busy[f.Target] = f.At + f.For
			away := 0
			for _, until := range busy {
				if until > f.At {
					away++
				}
			}
			require.LessOrEqual(t, away, 3)
			if f.Kind == plan.Freeze {
				require.True(t, f.For >= 300*time.Millisecond && f.For <= 6*time.Second)
			}
		}
	}
}

func TestOnlyWhatIsAskedFor(t *testing.T) {
	c := config
	c.Servers, c.Blackout, c.Kinds = 0, 0, []plan.Kind{plan.Roll}
	for _, f := range plan.Plan(3, c) {
		require.Equal(t, plan.Roll, f.Kind)
	}
	c.Kinds = nil
	require.Empty(t, plan.Plan(3, c))
}

func TestSkews(t *testing.T) {
	skews := plan.Skews(9, 5, time.Second)
	require.Len(t, skews, 5)
	require.Equal(t, []time.Duration{time.Second, -time.Second}, skews[:2])
	for _, s := range skews {
		require.LessOrEqual(t, s.Abs(), time.Second)
	}
}
