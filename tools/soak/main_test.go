package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/harness"
	"github.com/tenure-dev/tenure/tools/harness/harnesstest"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/replica"
	"github.com/tenure-dev/tenure/tools/soak/report"
)

func TestMain(m *testing.M) { harnesstest.Main(m, replica.Begin) }

func TestInterruptEndsInOrder(t *testing.T) { harnesstest.Interrupt(t, soakMain) }

func TestShortRun(t *testing.T) {
	dir := t.TempDir()
	keep, data := filepath.Join(dir, "journals"), filepath.Join(dir, "report.json")
	var out bytes.Buffer
	code := soakMain([]string{"-duration", "10s", "-seed", "3", "-keep", keep, "-report", data, "-v"}, &out)
	text, err := os.ReadFile(data)
	require.NoError(t, err, out.String())
	var r report.Report
	require.NoError(t, json.Unmarshal(text, &r))
	if late := 0.05; code != harness.ExitPass && r.Late.P50 > late { // seconds; ten times what it is on two processors
		t.Skipf("half of the runs began later than %.3f s: this machine cannot carry the work, so it loses ticks", r.Late.P50)
	}
	require.Equal(t, harness.ExitPass, code, out.String())
	require.Contains(t, out.String(), "seed 3:")
	require.Contains(t, out.String(), "PASS")

	require.True(t, r.Pass)
	require.Equal(t, uint64(3), r.Seed)
	require.NotZero(t, r.Runs)
	require.NotZero(t, r.Exact)
	require.NotZero(t, r.Explained)
	require.NotEmpty(t, r.Faults)
	require.NotEmpty(t, r.Skips)
	require.GreaterOrEqual(t, r.Stopped, plan.Replicas)

	harnesstest.CheckAgain(t, soakMain, keep)
}

func TestPlan(t *testing.T) {
	var first, second bytes.Buffer
	require.Equal(t, harness.ExitPass, soakMain([]string{"-plan", "-seed", "5"}, &first))
	require.Equal(t, harness.ExitPass, soakMain([]string{"-plan", "-seed", "5"}, &second))
	require.Equal(t, first.String(), second.String())
	require.Contains(t, first.String(), "all replicas")
}

func TestTrouble(t *testing.T) {
	for _, args := range [][]string{
		{"-duration", "1s"}, {"-duration", "48h"}, {"-topology", "six"}, {"x"}, {"-x"}, {"-keep", t.TempDir()}, {"-check", t.TempDir()},
	} {
		require.Equal(t, harness.ExitTrouble, soakMain(args, &bytes.Buffer{}), "%q", args)
	}
	require.Equal(t, harness.ExitPass, soakMain([]string{"-help"}, &bytes.Buffer{}))
	t.Setenv("TENURE_VALKEY_SERVER", "no-such-server")
	t.Setenv("TMPDIR", t.TempDir())
	require.Equal(t, harness.ExitTrouble, soakMain([]string{"-duration", "5s"}, &bytes.Buffer{}))
}
