package main

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
)

func TestMain(m *testing.M) { clients.Tests(m, begin) }

// interrupter sends this process SIGINT once a text has been written to it.
type interrupter struct {
	bytes.Buffer
	at   string
	once sync.Once
}

func (i *interrupter) Write(p []byte) (int, error) {
	n, err := i.Buffer.Write(p)
	if bytes.Contains(i.Buffer.Bytes(), []byte(i.at)) {
		i.once.Do(func() {
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Signal(os.Interrupt)
			}
		})
	}
	return n, err
}

// A run that is interrupted during the faults ends in order and leaves nothing.
func TestInterruptEndsInOrder(t *testing.T) {
	for _, workload := range []string{"leases", "five"} {
		t.Setenv("TMPDIR", t.TempDir())
		out := &interrupter{at: "faults for"}
		code := torture([]string{"-workload", workload, "-duration", "10m", "-seed", "1"}, out)
		require.Equal(t, exitInterrupted, code, out.String())
		require.Contains(t, out.String(), "interrupted: no violation so far")
		left, err := os.ReadDir(os.TempDir())
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// short runs a workload for some seconds and returns what was found, and the journals.
func short(t *testing.T, workload, duration string) (v *checker.Verdict, keep string) {
	keep = filepath.Join(t.TempDir(), "journals")
	var out bytes.Buffer
	code := torture([]string{"-workload", workload, "-duration", duration, "-seed", "3", "-keep", keep, "-v"}, &out)
	h, err := history.Open(keep)
	require.NoError(t, err, out.String())
	v = checker.Check(h, jobs.All())
	require.Contains(t, out.String(), "-seed 3 ")
	require.Contains(t, out.String(), "faults: ")
	require.Equal(t, len(v.Violations) > 0, code == exitViolation, out.String())
	require.Equal(t, len(v.Violations) == 0, code == exitPass, out.String())
	return v, keep
}

func TestShortRunWithLeases(t *testing.T) {
	v, keep := short(t, "leases", "6s")
	require.Empty(t, v.Violations)
	require.Equal(t, 4, v.Counts["keys acquired after the faults"])
	require.GreaterOrEqual(t, v.Counts["clients stopped in order"], 8)
	require.NotZero(t, v.Counts["operations that porcupine ordered"])

	// The journals are judged again: as they are, and with a key that is left.
	var out bytes.Buffer
	require.Equal(t, exitPass, torture([]string{"-check", keep}, &out))
	account := filepath.Join(keep, "account.json")
	text, err := os.ReadFile(account)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte(`"leftover": null`), []byte(`"leftover": ["server 1: p:{a}"]`), 1)
	require.NoError(t, os.WriteFile(account, text, 0o600))
	require.Equal(t, exitViolation, torture([]string{"-check", keep}, &out))
	require.Contains(t, out.String(), "leftover key: server 1")
}

func TestShortRunWithJobs(t *testing.T) {
	v, _ := short(t, "five", "10s")
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

func TestTrouble(t *testing.T) {
	for _, args := range [][]string{
		{"-duration", "1s"}, {"-duration", "48h"}, {"-workload", "x"}, {"x"}, {"-x"}, {"-keep", t.TempDir()}, {"-check", t.TempDir()},
	} {
		require.Equal(t, exitTrouble, torture(args, &bytes.Buffer{}), "%q", args)
	}
	require.Equal(t, exitPass, torture([]string{"-help"}, &bytes.Buffer{}))
	t.Setenv("TENURE_VALKEY_SERVER", "no-such-server")
	t.Setenv("TMPDIR", t.TempDir())
	require.Equal(t, exitTrouble, torture([]string{"-duration", "5s"}, &bytes.Buffer{}))
}

func TestSeedIsDrawn(t *testing.T) {
	first, err := parse(nil)
	require.NoError(t, err)
	second, err := parse(nil)
	require.NoError(t, err)
	require.NotZero(t, first.seed)
	require.NotEqual(t, first.seed, second.seed)
}
