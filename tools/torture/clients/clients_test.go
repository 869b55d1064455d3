package clients_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

const (
	patience   = 20 * time.Second
	impatience = 100 * time.Millisecond
)

func group(t *testing.T, stops time.Duration, traits ...trait) (g *clients.Group, journals string) {
	t.Helper()
	journals = t.TempDir()
	g, err := clients.New(clients.Config{
		Count: len(traits), Journals: journals, Patience: stops,
		Settings: func(number int) clients.Settings { return clients.Settings{Zone: traits[number]} },
	})
	require.NoError(t, err)
	t.Cleanup(func() { g.Close() })
	return g, journals
}

func TestLives(t *testing.T) {
	g, journals := group(t, patience, "a", "b")
	require.NoError(t, g.StartAll())
	require.NoError(t, g.StartAll(), "they are alive")
	require.NoError(t, g.Stop(0))
	require.NoError(t, g.Stop(0), "it is dead")
	require.Equal(t, "c0.1", g.Life(0))
	require.NoError(t, g.Start(0))
	require.Equal(t, "c0.2", g.Life(0))
	require.True(t, g.Kill(1))
	require.False(t, g.Kill(1), "it is dead")
	require.False(t, g.Freeze(1))
	require.NoError(t, g.Start(1))
	require.NoError(t, g.Conclude())
	var names []string
	for _, life := range g.Close() {
		names = append(names, life.Name)
		require.Less(t, life.Began, life.Ended)
		require.Equal(t, life.Name == "c1.1", life.Killed != 0)
		if life.Killed != 0 {
			require.Equal(t, "signal: killed", life.Err)
			require.GreaterOrEqual(t, life.Ended, life.Killed)
		} else {
			require.Empty(t, life.Err)
		}
	}
	require.ElementsMatch(t, []string{"c0.1", "c0.2", "c1.1", "c1.2"}, names)

	records, err := history.ReadAll(journals)
	require.NoError(t, err)
	texts := make(map[string][]string)
	for name, all := range records {
		for _, r := range all {
			texts[name] = append(texts[name], string(r.Kind)+" "+r.Text)
		}
	}
	require.Equal(t, map[string][]string{
		"c0.1": {"start a1 0", "stop "}, "c0.2": {"start a2 0", "conclude ", "stop "},
		"c1.1": {"start b1 1"}, "c1.2": {"start b2 1", "conclude ", "stop "},
	}, texts)
}

func TestFreeze(t *testing.T) {
	g, _ := group(t, patience, "", "")
	require.NoError(t, g.StartAll())
	require.True(t, g.Freeze(0))
	require.NoError(t, g.Stop(0), "it is thawed for that")
	require.True(t, g.Freeze(1))
	g.Thaw(1)
	g.Thaw(1)
	require.True(t, g.Freeze(1))
	require.True(t, g.Kill(1), "SIGKILL ends the frozen")
	require.Len(t, g.Close(), 2)
}

func TestClientThatDoesNotBegin(t *testing.T) {
	g, journals := group(t, patience, fails)
	require.ErrorContains(t, g.StartAll(), "cannot start client c0.1")
	log, err := os.ReadFile(filepath.Join(journals, "c0.1.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "the trait says so")
}

func TestClientThatDoesNotStopIsKilled(t *testing.T) {
	g, _ := group(t, impatience, stubborn, stubborn)
	require.NoError(t, g.StartAll())
	require.ErrorContains(t, g.StopAll(), "did not stop")
	stopped := history.Now()
	for _, life := range g.Close() {
		require.NotZero(t, life.Killed)
		require.Less(t, life.Killed, stopped)
	}
}

func TestCloseKillsAll(t *testing.T) {
	g, _ := group(t, patience, "", "")
	require.NoError(t, g.StartAll())
	require.True(t, g.Freeze(0))
	for _, life := range g.Close() {
		require.Equal(t, "signal: killed", life.Err)
	}
}

func TestLeakIsWrittenDown(t *testing.T) {
	g, journals := group(t, patience, leaks)
	require.NoError(t, g.StartAll())
	require.NoError(t, g.StopAll())
	records, err := history.ReadAll(journals)
	require.NoError(t, err)
	last := records["c0.1"][len(records["c0.1"])-1]
	require.Equal(t, history.Stop, last.Kind)
	require.Contains(t, last.Text, "clients_test.begin")
}

func TestNumber(t *testing.T) {
	for name, want := range map[string]int{"c3.2/17": 3, "c12.1": 12, "": -1, "x": -1} {
		require.Equal(t, want, clients.Number(name), name)
	}
}
