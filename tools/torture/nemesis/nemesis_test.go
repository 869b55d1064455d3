package nemesis_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/cluster"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/nemesis"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

func TestMain(m *testing.M) {
	clients.Tests(m, func(*clients.Process) (func(bool) error, error) { return func(bool) error { return nil }, nil })
}

const (
	ms       = time.Millisecond
	replicas = 3
)

// start begins a server, and replicas that do nothing.
func start(t *testing.T) *nemesis.Nemesis {
	t.Helper()
	servers, err := cluster.New(plan.Topology{Servers: 1, TLS: true}, "", t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, servers.Close()) })
	group, err := clients.New(clients.Config{
		Count: replicas, Spare: 1, Journals: t.TempDir(), Patience: time.Minute, Settings: func(int) clients.Settings { return clients.Settings{} },
	})
	require.NoError(t, err)
	t.Cleanup(func() { group.Close() })
	require.NoError(t, group.StartAll())
	return &nemesis.Nemesis{Cluster: servers, Clients: group}
}

func TestEveryFaultHappens(t *testing.T) {
	n := start(t)
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
	server, everybody := []int{0}, []int{0, 1, 2}
	require.NoError(t, n.Run(t.Context(), &out, []plan.Fault{
		{At: 1 * ms, For: 100 * ms, Kind: plan.RestartKeep, Targets: server},
		{At: 2 * ms, For: 100 * ms, Kind: plan.Freeze, Targets: []int{1}},
		{At: 3 * ms, For: 50 * ms, Kind: plan.Kill, Targets: server},
		{At: 4 * ms, For: 50 * ms, Kind: plan.FreezeHolder, Targets: server},
		{At: 5 * ms, For: 50 * ms, Kind: plan.KillHolder, Targets: []int{1}},
		{At: 6 * ms, For: 50 * ms, Kind: plan.Pause, Targets: server},
		{At: 500 * ms, Kind: plan.Roll, Targets: server},
		{At: 500 * ms, For: 50 * ms, Kind: plan.RestartEmpty, Targets: server},
		{At: 600 * ms, For: 50 * ms, Kind: plan.FreezeServer, Targets: server},
		{At: 700 * ms, For: 10 * ms, Kind: plan.ClockForward, Targets: server, Amount: time.Second},
		{At: 710 * ms, For: 10 * ms, Kind: plan.ClockBack, Targets: server, Amount: time.Second},
		{At: 720 * ms, For: 10 * ms, Kind: plan.Latency, Targets: server, Amount: time.Second},
		{At: 730 * ms, For: 10 * ms, Kind: plan.Expire, Targets: server},
		{At: 740 * ms, For: 50 * ms, Kind: plan.OtherList, Targets: server},
		{At: 900 * ms, For: 50 * ms, Kind: plan.Blackout, Targets: everybody},
		{At: 2500 * ms, Kind: plan.RollAtTick, Targets: []int{1}, Amount: -20 * ms},
		{At: 4000 * ms, Kind: plan.Deploy, Targets: everybody},
		{At: 4001 * ms, For: ms, Kind: plan.TakenBack, Targets: everybody},
	}))
	require.Contains(t, out.String(), "clients [0 1 2]")
	got := n.Strikes()
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
	require.ElementsMatch(t, []string{"c0.2", "c0.4", "c1.3", "c2.2", "c0.5", "c1.4", "c0.6", "c1.5"}, lives["roll"], "all but one of a deploy")
	require.EqualValues(t, 1, n.Version.Load())
	delete(lives, "roll")
	require.Equal(t, map[plan.Kind][]string{
		"restart-keep": {""}, "restart-empty": {""}, "freeze-server": {""}, "clock-forward": {""}, "clock-back": {""}, "latency": {""}, "expire": {""},
		"freeze": {"c1.1"}, "kill": {"c0.1"}, "freeze-holder": {"c2.1"}, "kill-holder": {""}, "blackout": {""}, "pause": {""},
		"roll-at-tick": {"c1.2"}, "deploy": {""}, "taken-back": {""}, "other-list": {""},
	}, lives)
	killed := 0
	for _, life := range n.Clients.Close() {
		if life.Killed != 0 {
			killed++
		}
	}
	require.Equal(t, 1+replicas+replicas, killed, "by kill, the blackout, and in the end")
}

// Faults of a target happen in their order. An error ends all, and what goes on is put right at
// once.
func TestErrorEndsAll(t *testing.T) {
	n := start(t)
	n.Job = func(int) string { return "job" }
	n.Pause = func(context.Context, int) error { return nil }
	var resumes atomic.Int64
	n.Resume = func(context.Context, int) error { // a conflict outlasts the faults
		if resumes.Add(1) < 3 {
			return errors.New("no quorum")
		}
		return nil
	}
	var out bytes.Buffer
	server, everybody := []int{0}, []int{0, 1, 2}
	err := n.Run(t.Context(), &out, []plan.Fault{
		{For: 300 * ms, Kind: plan.FreezeServer, Targets: server},
		{At: 1 * ms, For: 301 * ms, Kind: plan.RestartKeep, Targets: server},
		{At: 2 * ms, For: time.Hour, Kind: plan.Pause, Targets: server},
		{At: 1000 * ms, Kind: "x", Targets: server, Side: plan.Left},
		{At: time.Hour, Kind: plan.Deploy, Targets: everybody},
	})
	require.ErrorContains(t, err, "no fault of a server or a link")
	require.NotContains(t, out.String(), "deploy")
	got := n.Strikes()
	require.Len(t, got, 3)
	require.EqualValues(t, 3, resumes.Load())
	require.Empty(t, got[2].Failed)
	require.GreaterOrEqual(t, got[1].From, got[0].To, "the second waits for the first")
}
