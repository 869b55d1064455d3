package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/crowd"
	"github.com/tenure-dev/tenure/tools/chaos/report"
)

func TestMain(m *testing.M) {
	if os.Getenv(crowd.Variable) != "" {
		os.Exit(client.Main(os.Stdin, os.Stdout))
	}
	// toxiproxy leaves goroutines behind, see package arena.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}

func TestShortRun(t *testing.T) {
	dir := t.TempDir()
	keep, data, page := filepath.Join(dir, "journals"), filepath.Join(dir, "report.json"), filepath.Join(dir, "report.md")
	var out bytes.Buffer
	code := chaosMain([]string{"-duration", "6s", "-seed", "3", "-keep", keep, "-report", data}, &out)
	require.Equal(t, exitPass, code, out.String())
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
	require.Equal(t, 8, r.Stopped)
	require.Equal(t, "Ok", r.Porcupine)

	again := chaosMain([]string{"-check", keep, "-report", page}, &out)
	require.Equal(t, exitPass, again)
	text, err = os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "| seed | 3 |")

	// The same journals with one thing put wrong.
	account := filepath.Join(keep, accountName)
	text, err = os.ReadFile(account)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte(`"leftover": null`), []byte(`"leftover": ["server 1: chaos:{a}"]`), 1)
	require.NoError(t, os.WriteFile(account, text, 0o600))
	require.Equal(t, exitViolation, chaosMain([]string{"-check", keep}, &out))
	require.Contains(t, out.String(), "VIOLATION leftover key")
}

func TestPlan(t *testing.T) {
	var first, second bytes.Buffer
	require.Equal(t, exitPass, chaosMain([]string{"-plan", "-seed", "5"}, &first))
	require.Equal(t, exitPass, chaosMain([]string{"-plan", "-seed", "5"}, &second))
	require.Equal(t, first.String(), second.String())
	require.Greater(t, strings.Count(first.String(), "\n"), 100)
}

func TestTrouble(t *testing.T) {
	for _, args := range [][]string{
		{"-duration", "1s"}, {"-clients", "7"}, {"-keys", "1"}, {"-workers", "0"}, {"-control", "x"}, {"x"}, {"-x"},
		{"-keep", t.TempDir()}, {"-check", t.TempDir()},
	} {
		require.Equal(t, exitTrouble, chaosMain(args, &bytes.Buffer{}), "%q", args)
	}
	t.Setenv("TENURE_VALKEY_SERVER", "no-such-server")
	t.Setenv("TMPDIR", t.TempDir())
	require.Equal(t, exitTrouble, chaosMain([]string{"-duration", "5s"}, &bytes.Buffer{}))
}

func TestSeedIsDrawn(t *testing.T) {
	a, err := parseFlags(nil)
	require.NoError(t, err)
	b, err := parseFlags(nil)
	require.NoError(t, err)
	require.NotZero(t, a.seed)
	require.NotEqual(t, a.seed, b.seed)
	require.Equal(t, 5*time.Minute, a.duration)
}
