package leases_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/leases"
	"github.com/tenure-dev/tenure/tools/torture/torturetest"
)

func TestMain(m *testing.M) { torturetest.Main(m, leases.Begin) }

// start starts a client of servers.
func start(t *testing.T, fleet *valkeytest.Fleet) (g *clients.Group, records func() map[string][]history.Record) {
	t.Helper()
	dir := t.TempDir()
	journals := history.Clients(dir)
	g, err := clients.New(clients.Config{
		Count: 1, Letter: "c", Journals: journals, Patience: time.Minute,
		Settings: func(int, int) any {
			return leases.Settings{URLs: fleet.URLs(), Holders: filepath.Join(dir, "holders.jsonl"), Clients: 8, Seed: 1}
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { g.Close() })
	require.NoError(t, g.StartAll())
	return g, func() map[string][]history.Record {
		all, err := history.ReadAll(journals)
		require.NoError(t, err)
		return all
	}
}

func count(records []history.Record) map[history.Kind]int {
	kinds := make(map[history.Kind]int)
	for _, r := range records {
		kinds[r.Kind]++
	}
	return kinds
}

func TestClientWorks(t *testing.T) {
	g, records := start(t, valkeytest.Start(t, 3, valkeytest.WithAge(time.Hour)))
	require.Eventually(t, func() bool {
		kinds := count(records()["c0.1"])
		return kinds[history.Release] >= 5 && kinds[history.Valid] >= 20
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, g.Conclude())
	all := records()["c0.1"]
	kinds, probes := count(all), 0
	for _, r := range all {
		switch r.Kind {
		case history.Want:
			if r.Text == "probe" {
				probes++
			}
		case history.Grant, history.Valid:
			require.Greater(t, r.Deadline, r.At)
		}
	}
	require.Equal(t, 1, kinds[history.Votes])
	require.Equal(t, 1, probes, "its part of the keys")
	require.Equal(t, kinds[history.Want], kinds[history.Grant]+kinds[history.Fail])
	require.Equal(t, history.Stop, all[len(all)-1].Kind)
	require.Empty(t, all[len(all)-1].Text, "no goroutine is left")
}
