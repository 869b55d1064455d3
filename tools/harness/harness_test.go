package harness_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/tools/harness"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/harness/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program starts nothing, and finds as many violations as it is told.
type program struct {
	harness.Options
	Found  int
	broken bool
}

type account struct {
	harness.Account
	Found int
}

func (p *program) Flags(flags *flag.FlagSet) {
	flags.IntVar(&p.Found, "found", 0, "")
	flags.BoolVar(&p.broken, "broken", false, "")
}

func (p *program) Check() error {
	if p.Found > 9 {
		return errors.New("-found is too large")
	}
	return nil
}

func (p *program) Command() string      { return "again" }
func (p *program) Plan() []fmt.Stringer { return harness.Lines([]time.Duration{time.Second}) }

func (p *program) Run(_ context.Context, files *harness.Archive, _, faults io.Writer) error {
	if p.broken {
		return errors.New("it is broken")
	}
	fmt.Fprintln(faults, "a fault")
	strikes, err := files.CreateStrikes()
	if err != nil {
		return err
	}
	return errors.Join(strikes.Append("strike"), strikes.Close(),
		files.Close([]history.Life{{Name: "c0.1"}}, account{p.Account(p.Command()), p.Found}))
}

func (p *program) Judge(files *harness.Archive) (harness.Report, error) {
	var acc account
	if err := files.Account(&acc); err != nil {
		return nil, err
	}
	_, lives, strikes, err := harness.ReadRun[string, string](files)
	if err != nil {
		return nil, err
	}
	found := &findings{Run: acc.Run, Lives: len(lives), Strikes: len(strikes)}
	for range acc.Found {
		found.Violations.Add("kind", "text")
	}
	return found, nil
}

type findings struct {
	report.Run
	Lives, Strikes int
	Violations     report.Violations
}

func (f *findings) Sheet() *report.Sheet {
	rows := []report.Row{{"lives; strikes", fmt.Sprint(f.Lives, "; ", f.Strikes)}}
	return &report.Sheet{Run: f.Run, Rows: rows, Violations: f.Violations}
}

func run(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	p := &program{Options: harness.Options{Name: "test", Duration: time.Minute}}
	var b bytes.Buffer
	code = harness.Main(&p.Options, p, args, &b)
	return code, b.String()
}

func TestExitStatus(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{nil, harness.ExitPass, "lives; strikes  1; 1\nPASS"},
		{[]string{"-v"}, harness.ExitPass, "a fault\n"},
		{[]string{"-help"}, harness.ExitPass, ""},
		{[]string{"-plan", "-seed", "5"}, harness.ExitPass, "seed 5: 1 faults; the same again: again\n1s\n"},
		{[]string{"-found", "2", "-keep", filepath.Join(dir, "two")}, harness.ExitViolation, "VIOLATION kind: text\nFAIL: 2"},
		{[]string{"-check", filepath.Join(dir, "two")}, harness.ExitViolation, "FAIL: 2"},
		{[]string{"-keep", filepath.Join(dir, "two")}, harness.ExitTrouble, ""},
		{[]string{"-check", dir}, harness.ExitTrouble, ""},
		{[]string{"-broken", "-keep", filepath.Join(dir, "broken")}, harness.ExitTrouble, "seed"},
		{[]string{"-duration", "1s"}, harness.ExitTrouble, ""},
		{[]string{"-found", "10"}, harness.ExitTrouble, ""},
		{[]string{"x"}, harness.ExitTrouble, ""},
		{[]string{"-x"}, harness.ExitTrouble, ""},
	} {
		code, out := run(t, test.args...)
		require.Equal(t, test.code, code, "%q: %s", test.args, out)
		require.Contains(t, out, test.says, "%q", test.args)
	}
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "journals of what passed")
}

func TestReportFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for name, want := range map[string]string{"r.json": `"seed": 7`, "r.md": "| lives; strikes | 1; 1 |"} {
		path := filepath.Join(t.TempDir(), name)
		code, out := run(t, "-seed", "7", "-report", path)
		require.Equal(t, harness.ExitPass, code, out)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), want)
	}
	code, _ := run(t, "-report", filepath.Join(t.TempDir(), "no", "directory"))
	require.Equal(t, harness.ExitTrouble, code)
}

func TestSeedIsDrawn(t *testing.T) {
	var seeds []uint64
	for range 2 {
		p := &program{Options: harness.Options{Name: "test", Duration: time.Minute}}
		require.NoError(t, p.Parse(p, nil))
		require.NotZero(t, p.Seed)
		require.Equal(t, time.Minute, p.Duration)
		seeds = append(seeds, p.Seed)
	}
	require.NotEqual(t, seeds[0], seeds[1])
}
