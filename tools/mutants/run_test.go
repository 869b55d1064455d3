package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests here run the whole tool on two modules of a few lines, testdata/tiny and its tools.

// tinyMutants has one of each kind.
const tinyMutants = `
caught: A wrong key opens nothing.
- key != 7
+ key < 0
.: TestWrongKey TestRightKey
chaos: -keys 9

caught-in-another-module: A wrong key opens nothing.
- key != 7
+ key < 0
./tools/chaos: TestOfTheModuleBesideIt

survives: Three may enter.
- 3
+ 4
.: TestWrongKey TestRightKey

rotted: The door is blue.
- blue
+ red
.: TestWrongKey TestRightKey

lost: The door is where it was.
- return
.: TestWrongKey TestRightKey

unbuilt: It opens.
- d.open
+ d.shut
.: TestWrongKey TestRightKey

dies: One may enter.
- 3
+ 0
.: TestVisitors
dies: index out of range

dies-unexpectedly: One may enter.
- 3
+ 0
.: TestVisitors

caught-the-third-time: Not four.
- 3
+ 4
.: TestThirdVisit
often: 3

chaos-does-not-see-it: A right key opens.
- 7
+ 70
.: TestWrongKey TestRightKey
chaos: -keys 9
`

// tiny returns some of them, or all if none is named.
func tiny(t *testing.T, names ...string) []Mutant {
	t.Helper()
	list, err := parseList("tiny.txt", tinyMutants)
	require.NoError(t, err)
	return slices.DeleteFunc(list, func(m Mutant) bool { return len(names) > 0 && !slices.Contains(names, m.Name) })
}

// runTiny runs the tool in testdata/tiny, demands its exit code, and returns what it printed.
func runTiny(t *testing.T, code int, list []Mutant, args ...string) (out, errs string) {
	t.Helper()
	t.Chdir(filepath.Join("testdata", "tiny"))
	var stdout, stderr strings.Builder
	got := mutantsMain(t.Context(), append([]string{"-timeout", "30s"}, args...), list, &stdout, &stderr)
	require.Equal(t, code, got, "%s%s", &stdout, &stderr)
	return stdout.String(), stderr.String()
}

func requireLine(t *testing.T, out string, words ...string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if strings.Join(strings.Fields(line), " ") == strings.Join(words, " ") {
			return
		}
	}
	require.Fail(t, "no such line", "%q in\n%s", words, out)
}

// requireError demands that a mutant shows nothing, with a reason.
func requireError(t *testing.T, out, name, why string) {
	t.Helper()
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "ERROR" && words[1] == name {
			require.Contains(t, line, why)
			return
		}
	}
	require.Fail(t, "no error", "of %s in\n%s", name, out)
}

func TestMutantsOfEveryKind(t *testing.T) {
	list := tiny(t)
	door, err := filepath.Abs(filepath.Join("testdata", "tiny", "door.go"))
	require.NoError(t, err)
	before := readAll(t, door)
	page := filepath.Join(t.TempDir(), "page.md")
	out, errs := runTiny(t, exitTrouble, list, "-markdown", page)
	require.Empty(t, errs)
	requireLine(t, out, "passed", ".:", "4", "tests with nothing broken")
	requireLine(t, out, "caught", "caught", "TestWrongKey")
	requireLine(t, out, "caught", "caught-in-another-module", "TestOfTheModuleBesideIt")
	requireLine(t, out, "SURVIVED", "survives", "Three may enter.")
	requireLine(t, out, "caught", "dies", "TestVisitors")
	requireLine(t, out, "caught", "caught-the-third-time", "TestThirdVisit")
	requireLine(t, out, "caught", "chaos-does-not-see-it", "TestRightKey")
	requireError(t, out, "rotted", "door.go:9: rotted: the line with //mutant:rotted has 0 times, and must have once: blue")
	requireError(t, out, "lost", "no line ends in //mutant:lost")
	requireError(t, out, "unbuilt", "does not compile")
	require.Contains(t, out, "d.shut undefined")
	requireError(t, out, "dies-unexpectedly", "index out of range")
	requireLine(t, out, "10 mutants: 5 caught, 1 survived, 4 show nothing")

	table := readAll(t, page)
	last := -1
	for _, m := range list {
		at := strings.Index(table, "| `"+m.Name+"` |")
		require.Greater(t, at, last, "the table is not in the order of the list:\n%s", table)
		last = at
	}
	require.Equal(t, before, readAll(t, door), "the file on disk was broken")
	require.NoFileExists(t, filepath.Join(filepath.Dir(door), "case.fail"), "a test that failed left a trace")
}

func TestSurvivorAlone(t *testing.T) {
	out, _ := runTiny(t, exitSurvived, tiny(t), "-run", "^survives$")
	requireLine(t, out, "1 mutants: 0 caught, 1 survived, 0 show nothing")
}

func TestTryFindsWhatCatches(t *testing.T) {
	list := tiny(t, "caught")
	list[0].Checks = []Check{{Package: ".", Tests: []string{"TestVisitors", "TestGone"}}} // which do not notice it, or do not exist
	out, _ := runTiny(t, exitCaught, list, "-try", "Key$", "-parallel", "1")
	requireLine(t, out, "caught", "caught", "TestWrongKey")
	requireLine(t, out, "1 mutants: 1 caught, 0 survived, 0 show nothing")
	require.NotContains(t, out, "nothing broken", "what is tried need not pass by itself")
}

func TestTryFindsNothing(t *testing.T) {
	list := tiny(t, "caught")
	list[0].Checks = []Check{{Package: ".", Tests: []string{"TestGone"}}}
	out, _ := runTiny(t, exitSurvived, list, "-try", "Visitors")
	requireLine(t, out, "1 mutants: 0 caught, 1 survived, 0 show nothing")
}

func TestChaosHasToSeeIt(t *testing.T) {
	out, errs := runTiny(t, exitTrouble, tiny(t), "-run", "^(caught|chaos-.*)$", "-chaos")
	require.Empty(t, errs)
	requireLine(t, out, "passed", "chaos", "-keys", "9", "with nothing broken")
	requireLine(t, out, "caught", "caught", "TestWrongKey,", "chaos")
	requireError(t, out, "chaos-does-not-see-it", "-keys 9 does not catch it")
}

func TestChaosThatCannotRun(t *testing.T) {
	list := tiny(t, "caught")
	list[0].Chaos = "-keys 0"
	_, errs := runTiny(t, exitTrouble, list, "-chaos")
	require.Contains(t, errs, "exit status 2")
}

// Tests that do not pass by themselves catch nothing.
func TestNothingIsRunAfterABadBaseline(t *testing.T) {
	for _, test := range []struct{ name, test, says string }{
		{"no such test", "TestNobody", ". has no test TestNobody"},
		{"a test that fails", "TestBroken", "nothing is broken and . failed: TestBroken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "tiny"))))
			broken := "package tiny\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { t.Error(\"by itself\") }\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, "broken_test.go"), []byte(broken), 0o600))
			t.Chdir(dir)
			var stdout, stderr strings.Builder
			list := tiny(t, "caught")
			list[0].Checks = []Check{{Package: ".", Tests: []string{test.test}}}
			require.Equal(t, exitTrouble, mutantsMain(t.Context(), nil, list, &stdout, &stderr))
			require.Contains(t, stderr.String(), test.says)
			require.Empty(t, stdout.String())
		})
	}
}

func TestInterruptedRunsAreNoPass(t *testing.T) {
	t.Chdir(filepath.Join("testdata", "tiny"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr strings.Builder
	require.Equal(t, exitTrouble, mutantsMain(ctx, []string{"-try", "Key$"}, tiny(t, "caught", "survives"), &stdout, &stderr))
	require.Contains(t, stdout.String(), "0 caught, 0 survived, 2 show nothing")
	require.Equal(t, exitTrouble, mutantsMain(ctx, nil, tiny(t, "caught", "survives"), &stdout, &stderr))
	require.Contains(t, stderr.String(), "context canceled")
}

// cancelAt cancels when a line with this word is printed.
type cancelAt struct {
	word   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(text []byte) (int, error) {
	if strings.Contains(string(text), c.word) {
		c.cancel()
	}
	return len(text), nil
}

// The verdicts of a run that was cut short are no table.
func TestInterruptedRunWritesNoTable(t *testing.T) {
	t.Chdir(filepath.Join("testdata", "tiny"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	page := filepath.Join(t.TempDir(), "page.md")
	code := mutantsMain(ctx, []string{"-timeout", "30s", "-markdown", page}, tiny(t, "caught", "survives"), cancelAt{"nothing broken", cancel}, io.Discard)
	require.Equal(t, exitTrouble, code)
	require.NoFileExists(t, page)
}

func TestOutsideOfAModule(t *testing.T) {
	t.Chdir(t.TempDir())
	var stdout, stderr strings.Builder
	require.Equal(t, exitTrouble, mutantsMain(t.Context(), nil, tiny(t, "caught"), &stdout, &stderr))
	require.Contains(t, stderr.String(), "this is no module")
}

func readAll(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}
