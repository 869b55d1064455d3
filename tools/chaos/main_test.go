package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/report"
	"github.com/tenure-dev/tenure/tools/harness"
	"github.com/tenure-dev/tenure/tools/harness/harnesstest"
)

func TestMain(m *testing.M) { harnesstest.Main(m, client.Begin) }

func TestInterruptEndsInOrder(t *testing.T) { harnesstest.Interrupt(t, chaosMain) }

func TestShortRun(t *testing.T) {
	dir := t.TempDir()
	keep, data := filepath.Join(dir, "journals"), filepath.Join(dir, "report.json")
	var out bytes.Buffer
	code := chaosMain([]string{"-duration", "6s", "-seed", "3", "-keep", keep, "-report", data}, &out)
	require.Equal(t, harness.ExitPass, code, out.String())
	require.Contains(t, out.String(), "seed 3:")
	require.Contains(t, out.String(), "PASS")

	text, err := os.ReadFile(data)
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal(text, &r))
	require.True(t, r.Pass)
	require.Equal(t, uint64(3), r.Seed)
	require.NotZero(t, r.Grants)
	require.Equal(t, 4, r.Probes)
	require.NotZero(t, r.TickGrants)
	require.NotEmpty(t, r.Marks)
	require.Equal(t, 8, r.Stopped)
	require.Equal(t, "Ok", r.Porcupine)

	harnesstest.CheckAgain(t, chaosMain, keep)
}

func TestPlan(t *testing.T) {
	var first, second bytes.Buffer
	require.Equal(t, harness.ExitPass, chaosMain([]string{"-plan", "-seed", "5"}, &first))
	require.Equal(t, harness.ExitPass, chaosMain([]string{"-plan", "-seed", "5"}, &second))
	require.Equal(t, first.String(), second.String())
	require.Greater(t, strings.Count(first.String(), "\n"), 100)
}

func TestTrouble(t *testing.T) {
	for _, args := range [][]string{
		{"-duration", "1s"}, {"-clients", "7"}, {"-keys", "1"}, {"-workers", "0"}, {"-control", "x"}, {"x"}, {"-x"},
		{"-keep", t.TempDir()}, {"-check", t.TempDir()},
	} {
		require.Equal(t, harness.ExitTrouble, chaosMain(args, &bytes.Buffer{}), "%q", args)
	}
	t.Setenv("TENURE_VALKEY_SERVER", "no-such-server")
	t.Setenv("TMPDIR", t.TempDir())
	require.Equal(t, harness.ExitTrouble, chaosMain([]string{"-duration", "5s"}, &bytes.Buffer{}))
}
