package nemesis_test

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/harness/cluster"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/harnesstest"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/soak/nemesis"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/record"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

func TestMain(m *testing.M) {
	harnesstest.Main(m, func(*clients.Process) (func() error, error) { return func() error { return nil }, nil })
}

func TestEveryFaultHappens(t *testing.T) {
	servers, err := cluster.New(1)
	require.NoError(t, err)
	defer servers.Close()
	dir := t.TempDir()
	replicas, err := clients.New(clients.Config{
		Count: plan.Replicas, Letter: "r", Journals: dir, Patience: time.Minute, Settings: func(int, int) any { return nil },
	})
	require.NoError(t, err)
	defer replicas.Close()
	require.NoError(t, replicas.StartAll())
	strikes, err := history.Create(dir, "strikes")
	require.NoError(t, err)
	defer strikes.Close()
	var out bytes.Buffer
	asked := make(chan time.Time, 1)
	n := &nemesis.Nemesis{Cluster: servers, Replicas: replicas, Strikes: strikes, Clock: func(int) time.Time {
		now := time.Now()
		asked <- now
		return now
	}}
	ms := time.Millisecond
	require.NoError(t, n.Run(t.Context(), &out, []plan.Fault{
		{At: 1 * ms, For: 100 * ms, Kind: fault.RestartKeep},
		{At: 2 * ms, For: 100 * ms, Kind: plan.Freeze, Target: 1},
		{At: 3 * ms, For: 50 * ms, Kind: plan.Kill, Target: 0},
		{At: 500 * ms, Kind: plan.Roll, Target: 0},
		{At: 500 * ms, For: 50 * ms, Kind: fault.RestartEmpty},
		{At: 600 * ms, For: 50 * ms, Kind: fault.FreezeServer},
		{At: 900 * ms, For: 50 * ms, Kind: plan.Blackout},
		{At: 1100 * ms, Kind: plan.RollAtTick, Target: 1, Offset: -20 * ms},
		{At: 4000 * ms, Kind: plan.Deploy},
	}))
	require.Contains(t, out.String(), "all replicas")
	got, err := history.Read[record.Strike](filepath.Join(dir, "strikes"+history.Suffix))
	require.NoError(t, err)
	lives := make(map[string][]string)
	for _, strike := range got {
		lives[string(strike.Kind)] = append(lives[string(strike.Kind)], strike.Life)
		require.Less(t, strike.From, strike.To)
		if strike.Kind == plan.RollAtTick {
			now := <-asked
			tick := now.Add(20 * ms).Truncate(work.Beat).Add(work.Beat - 20*ms)
			require.GreaterOrEqual(t, strike.From, history.Now().Add(-time.Since(tick)-ms), "it waits for the tick")
		}
	}
	require.ElementsMatch(t, []string{"r0.2", "r0.4", "r1.3", "r2.2", "r3.2", "r4.2"}, lives["roll"], "all but one of the deploy")
	delete(lives, "roll")
	require.Equal(t, map[string][]string{
		"restart-keep": {""}, "restart-empty": {""}, "freeze-server": {""}, "freeze": {"r1.1"}, "kill": {"r0.1"}, "blackout": {""},
		"roll-at-tick": {"r1.2"}, "deploy": {""},
	}, lives)
	killed := make(map[string]bool)
	for _, life := range replicas.Close() {
		killed[life.Name] = life.Killed != 0
	}
	require.Equal(t, map[string]bool{
		"r0.1": true, "r0.2": false, "r0.3": true, "r0.4": false, "r0.5": true,
		"r1.1": true, "r1.2": false, "r1.3": false, "r1.4": true,
		"r2.1": true, "r2.2": false, "r2.3": true, "r3.1": true, "r3.2": false, "r3.3": true, "r4.1": true, "r4.2": false, "r4.3": true,
	}, killed)
}
