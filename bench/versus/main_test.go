package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func TestMain(m *testing.M) {
	if os.Getenv(place.Variable) != "" {
		os.Exit(place.RunChild(roles()))
	}
	goleak.VerifyTestMain(m,
		// toxiproxy leaves goroutines behind, see package torturetest of tools/torture.
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}

// TestRowsRun runs every row, small, on real servers.
func TestRowsRun(t *testing.T) {
	s, err := setUp(t.Context(), smokeSize(), t.Output(), valkeytest.WithAge(time.Hour))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			b := newBoard(r)
			require.NoError(t, r.run(t.Context(), s, b))
			b.finish()
			var text strings.Builder
			boards{b}.markdown(&text)
			t.Log(text.String())
			tenure := rival.Tenure
			switch r.name {
			case "due10", "due1000", "far":
				tenure = tenureScheduler
			}
			for _, c := range r.columns {
				require.NotEmpty(t, b.of(tenure.Name).Values[c.Name], "%s has no %q", tenure.Name, c.Name)
			}
			for _, l := range b.Lines {
				require.Equal(t, l.Absent == "", len(l.Values) > 0, "%s has numbers or a reason", l.Rival)
			}
			for _, j := range judge([]*board{b}, true) {
				require.NotContains(t, j.Verdict, "not measured")
			}
		})
	}
}

// TestRowFails shows that what goes wrong is no number.
func TestRowFails(t *testing.T) {
	s, err := setUp(t.Context(), smokeSize(), t.Output(), valkeytest.WithAge(time.Hour))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for _, n := range s.servers.Nodes() {
		require.NoError(t, n.Do(t, "CONFIG", "SET", "maxmemory", "1").Error()) // refuses writes
	}
	for _, r := range rows() {
		if slices.Contains([]string{"crash", "contended", "handover", "stall"}, r.name) {
			continue // they wait for as long as there is no quorum
		}
		require.Error(t, r.run(t.Context(), s, newBoard(r)), r.name)
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	cfg, err := parseFlags([]string{"-row", "distinct64", "-markdown", filepath.Join(dir, "a.md"), "-json", filepath.Join(dir, "a.json"),
		"-cpuprofile", filepath.Join(dir, "cpu.pprof")})
	require.NoError(t, err)
	cfg.size, cfg.servers = smokeSize(), []valkeytest.Option{valkeytest.WithAge(time.Hour)}
	var out bytes.Buffer
	require.Equal(t, exitDone, run(t.Context(), cfg, &out))
	require.Contains(t, out.String(), "### distinct64: ")
	for _, name := range []string{"a.md", "a.json", "cpu.pprof"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotZero(t, info.Size(), name)
	}
}

func TestFlags(t *testing.T) {
	c, err := parseFlags(nil)
	require.NoError(t, err)
	require.Len(t, c.rows, len(rows()))
	require.True(t, c.size.full)
	c, err = parseFlags([]string{"-quick", "-row", "pair, contended"})
	require.NoError(t, err)
	require.Equal(t, "pair", c.rows[0].name)
	require.Equal(t, "contended", c.rows[1].name)
	require.Len(t, c.rows, 2)
	require.False(t, c.size.full)
	require.Empty(t, c.only)
	c, err = parseFlags([]string{"-rival", "floor-batching, tenure,tenure-with-a-standby"})
	require.NoError(t, err)
	require.Equal(t, []*rival.Kind{rival.Batcher, rival.Tenure, rival.TenureStandby}, c.only)
	c, err = parseFlags([]string{"-hold", "10s"})
	require.NoError(t, err)
	require.False(t, c.size.full, "targets are for 30 s")
	for _, args := range [][]string{{"-row", "nobody"}, {"-rival", "nobody"}, {"x"}, {"-x"}, {"-hold", "1ms"}} {
		require.Equal(t, exitTrouble, versusMain(args, &bytes.Buffer{}), "%q", args)
	}
}

func TestTakePart(t *testing.T) {
	kinds := []*rival.Kind{rival.Floor, rival.Batcher, rival.Tenure}
	s := &stage{}
	require.Equal(t, kinds, s.takePart(kinds, 0))
	require.Equal(t, []*rival.Kind{rival.Batcher, rival.Tenure, rival.Floor}, s.takePart(kinds, 4), "another begins each round")
	s.only = []*rival.Kind{rival.Tenure, rival.Redislock}
	require.Equal(t, []*rival.Kind{rival.Tenure}, s.takePart(kinds, 1))
	require.Empty(t, s.takePart(kinds[:2], 1))
}
