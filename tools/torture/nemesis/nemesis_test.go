package nemesis_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/cluster"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/nemesis"
	"github.com/tenure-dev/tenure/tools/torture/plan"
	"github.com/tenure-dev/tenure/tools/torture/torturetest"
)

func TestMain(m *testing.M) {
	torturetest.Main(m, func(*clients.Process) (func() error, error) { return func() error { return nil }, nil })
}

const ms = time.Millisecond

// start begins a server, and replicas that do nothing.
func start(t *testing.T) (n *nemesis.Nemesis, dir string) {
	t.Helper()
	servers, err := cluster.New(1, false, cluster.Users{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, servers.Close()) })
	dir = t.TempDir()
	replicas, err := clients.New(clients.Config{
		Count: plan.Replicas, Letter: "r", Journals: dir, Patience: time.Minute, Settings: func(int, int) any { return nil },
	})
	require.NoError(t, err)
	t.Cleanup(func() { replicas.Close() })
	require.NoError(t, replicas.StartAll())
	strikes, err := history.Create(dir, "strikes")
	require.NoError(t, err)
	t.Cleanup(func() { strikes.Close() })
	return &nemesis.Nemesis{Cluster: servers, Clients: replicas, Strikes: strikes}, dir
}

func TestEveryFaultHappens(t *testing.T) {
	n, dir := start(t)
	var out bytes.Buffer
	asked := make(chan time.Time, 1)
	n.Clock = func(int) time.Time {
		now := time.Now()
		asked <- now
		return now
	}
	n.Holder = func(key int) int { return []int{2, -1}[key] }
	n.Job = func(int) string { return "job" }
	var resumes atomic.Int64
	n.Pause = func(context.Context, int) error { return nil }
	n.Resume = func(context.Context, int) error {
		if resumes.Add(1) == 1 {
			return errors.New("it is tried again")
		}
		return nil
	}
	server := []int{0}
	require.NoError(t, n.Run(t.Context(), &out, []plan.Fault{
		{At: 1 * ms, For: 100 * ms, Kind: plan.RestartKeep, Servers: server},
		{At: 2 * ms, For: 100 * ms, Kind: plan.Freeze, Client: 1},
		{At: 3 * ms, For: 50 * ms, Kind: plan.Kill, Client: 0},
		{At: 4 * ms, For: 50 * ms, Kind: plan.FreezeHolder, Key: 0},
		{At: 5 * ms, For: 50 * ms, Kind: plan.KillHolder, Key: 1},
		{At: 6 * ms, For: 50 * ms, Kind: plan.Pause},
		{At: 500 * ms, Kind: plan.Roll, Client: 0},
		{At: 500 * ms, For: 50 * ms, Kind: plan.RestartEmpty, Servers: server},
		{At: 600 * ms, For: 50 * ms, Kind: plan.FreezeServer, Servers: server},
		{At: 700 * ms, For: 10 * ms, Kind: plan.ClockForward, Servers: server, Amount: time.Second},
		{At: 710 * ms, For: 10 * ms, Kind: plan.ClockBack, Servers: server, Amount: time.Second},
		{At: 720 * ms, For: 10 * ms, Kind: plan.Latency, Servers: server, Amount: time.Second},
		{At: 900 * ms, For: 50 * ms, Kind: plan.Blackout},
		{At: 1100 * ms, Kind: plan.RollAtTick, Client: 1, Amount: -20 * ms},
		{At: 4000 * ms, Kind: plan.Deploy},
	}))
	require.Contains(t, out.String(), "all clients")
	got, err := history.Read[history.Strike](filepath.Join(dir, "strikes"+history.Suffix))
	require.NoError(t, err)
	lives := make(map[plan.Kind][]string)
	for _, s := range got {
		lives[s.Kind] = append(lives[s.Kind], s.Life)
		switch s.Kind {
		case plan.KillHolder:
			continue // nobody was there
		case plan.RollAtTick:
			now := <-asked
			tick := now.Add(20 * ms).Truncate(plan.Beat).Add(plan.Beat - 20*ms)
			require.GreaterOrEqual(t, s.From, history.Now().Add(-time.Since(tick)-ms), "it waits for the tick")
		case plan.ClockForward:
			require.Equal(t, time.Second, s.Jump)
		case plan.ClockBack:
			require.Equal(t, -time.Second, s.Jump)
		}
		require.Less(t, s.From, s.To)
		if s.Server >= 0 || s.Kind == plan.Pause {
			require.True(t, s.From < s.Done && s.Done < s.Heal && s.Heal < s.To, "%v", s)
		}
	}
	require.EqualValues(t, 2, resumes.Load())
	require.ElementsMatch(t, []string{"r0.2", "r0.4", "r1.3", "r2.2", "r3.2", "r4.2"}, lives["roll"], "all but one of the deploy")
	delete(lives, "roll")
	require.Equal(t, map[plan.Kind][]string{
		"restart-keep": {""}, "restart-empty": {""}, "freeze-server": {""}, "clock-forward": {""}, "clock-back": {""}, "latency": {""},
		"freeze": {"r1.1"}, "kill": {"r0.1"}, "freeze-holder": {"r2.1"}, "kill-holder": {""}, "blackout": {""}, "pause": {""},
		"roll-at-tick": {"r1.2"}, "deploy": {""},
	}, lives)
	killed := 0
	for _, life := range n.Clients.Close() {
		if life.Killed != 0 {
			killed++
		}
	}
	require.Equal(t, 1+plan.Replicas+plan.Replicas, killed, "by kill, the blackout, and in the end")
}

// Faults of a target happen in their order. An error ends all, and what goes on is put right at
// once.
func TestErrorEndsAll(t *testing.T) {
	n, dir := start(t)
	n.Job = func(int) string { return "job" }
	n.Pause = func(context.Context, int) error { return nil }
	n.Resume = func(context.Context, int) error { return nil }
	var out bytes.Buffer
	server := []int{0}
	err := n.Run(t.Context(), &out, []plan.Fault{
		{For: 300 * ms, Kind: plan.FreezeServer, Servers: server},
		{At: 1 * ms, For: 301 * ms, Kind: plan.RestartKeep, Servers: server},
		{At: 2 * ms, For: time.Hour, Kind: plan.Pause},
		{At: 1000 * ms, Kind: "x", Servers: server, Side: plan.Left},
		{At: time.Hour, Kind: plan.Deploy},
	})
	require.ErrorContains(t, err, "no fault of a link")
	require.NotContains(t, out.String(), "deploy")
	got, err := history.Read[history.Strike](filepath.Join(dir, "strikes"+history.Suffix))
	require.NoError(t, err)
	require.Len(t, got, 4)
	require.GreaterOrEqual(t, got[1].From, got[0].To, "the second waits for the first")
}
