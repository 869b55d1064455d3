package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

func TestMain(m *testing.M) { clients.Tests(m, begin) }

// short runs a workload for some seconds and returns the verdict.
func short(t *testing.T, workload, duration string) *checker.Verdict {
	keep := filepath.Join(t.TempDir(), "journals")
	var out bytes.Buffer
	code, v := torture([]string{"-workload", workload, "-duration", duration, "-seed", "3", "-keep", keep, "-v"}, &out)
	require.NotNil(t, v, out.String())
	require.DirExists(t, keep)
	require.Contains(t, out.String(), "-seed 3 ")
	require.Contains(t, out.String(), "faults: ")
	require.Equal(t, len(v.Violations) > 0, code == exitViolation, out.String())
	require.Equal(t, len(v.Violations) == 0, code == exitPass, out.String())
	return v
}

func TestShortRunWithLeases(t *testing.T) {
	v := short(t, "leases", "6s")
	require.Empty(t, v.Violations)
	require.Equal(t, 4, v.Counts["keys acquired after the faults"])
	require.GreaterOrEqual(t, v.Counts["clients stopped in order"], 8)
	require.NotZero(t, v.Counts["operations that porcupine ordered"])
}

// A key that is left is a violation, and the program ends with 1.
func TestViolation(t *testing.T) {
	var out bytes.Buffer
	for want, left := range map[int][]string{exitPass: nil, exitViolation: {"server 1: p:{a}"}} {
		v, err := judge(history.Account{Workload: "leases", Servers: 5, Undecided: time.Minute, Leftover: left}, t.TempDir())
		require.NoError(t, err)
		require.Equal(t, want, tell(v, &out))
	}
	require.Contains(t, out.String(), "leftover key: server 1")
}

func TestShortRunWithJobs(t *testing.T) {
	v := short(t, "five", "10s")
	const slow = 50 // ms; ten times what it is on two processors
	for _, found := range v.Violations {
		late := v.Counts[checker.Late] > slow // this machine cannot carry the work, so it loses ticks
		require.True(t, late && (found.Kind == checker.Lost || found.Kind == checker.Unexplained || found.Kind == checker.Silent), "%v", found)
	}
	for _, row := range []string{"runs", "ticks that had to be run exactly once", "ticks that had to be run, or else to be told of"} {
		require.NotZero(t, v.Counts[row], row)
	}
	require.NotZero(t, v.Counts["ticks not run here: done"])
	require.GreaterOrEqual(t, v.Counts["clients stopped in order"], 5)
}

// requireExit runs the program for its exit code.
func requireExit(t *testing.T, want int, args ...string) {
	code, _ := torture(args, &bytes.Buffer{})
	require.Equal(t, want, code, "%q", args)
}

func TestTrouble(t *testing.T) {
	for _, args := range [][]string{
		{"-duration", "1s"}, {"-duration", "48h"}, {"-workload", "x"}, {"x"}, {"-x"}, {"-keep", t.TempDir()},
	} {
		requireExit(t, exitTrouble, args...)
	}
	requireExit(t, exitPass, "-help")
	t.Setenv("TENURE_VALKEY_SERVER", "no-such-server")
	t.Setenv("TMPDIR", t.TempDir())
	requireExit(t, exitTrouble, "-duration", "5s")
}

func TestSeedIsDrawn(t *testing.T) {
	first, err := parse(nil)
	require.NoError(t, err)
	second, err := parse(nil)
	require.NoError(t, err)
	require.NotZero(t, first.seed)
	require.NotEqual(t, first.seed, second.seed)
}
