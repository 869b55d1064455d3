package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// The lines are those of go test -json (Go 1.26), without times and packages.
const (
	good = `{"Action":"run","Test":"TestGood"}
{"Action":"run","Test":"TestGood/sub"}
{"Action":"output","Test":"TestGood/sub","Output":"--- PASS: TestGood/sub (0.00s)\n"}
{"Action":"pass","Test":"TestGood/sub","Elapsed":0}
{"Action":"output","Test":"TestGood","Output":"--- PASS: TestGood (0.00s)\n"}
{"Action":"pass","Test":"TestGood","Elapsed":0}
`
	bad = `{"Action":"run","Test":"TestBad"}
{"Action":"run","Test":"TestBad/sub"}
{"Action":"output","Test":"TestBad/sub","Output":"    a_test.go:6: wrong\n"}
{"Action":"fail","Test":"TestBad/sub","Elapsed":0}
{"Action":"output","Test":"TestBad","Output":"--- FAIL: TestBad (0.00s)\n"}
{"Action":"fail","Test":"TestBad","Elapsed":0}
`
	skipped = `{"Action":"run","Test":"TestSkipped"}
{"Action":"output","Test":"TestSkipped","Output":"--- SKIP: TestSkipped (0.00s)\n"}
{"Action":"skip","Test":"TestSkipped","Elapsed":0}
`
	dying = `{"Action":"run","Test":"TestPanic"}
{"Action":"output","Test":"TestPanic","Output":"--- FAIL: TestPanic (0.00s)\n"}
{"Action":"output","Test":"TestPanic","Output":"    a_test.go:8: a clue\n"}
{"Action":"output","Test":"TestPanic","Output":"panic: oh no [recovered, repanicked]\n"}
{"Action":"output","Test":"TestPanic","Output":"panic: and again\n"}
{"Action":"fail","Test":"TestPanic","Elapsed":0}
`
	hanging = `{"Action":"run","Test":"TestHang"}
{"Action":"output","Test":"TestHang","Output":"panic: test timed out after 1s\n"}
{"Action":"output","Test":"TestHang","Output":"\trunning tests:\n"}
`
	fatal = `{"Action":"run","Test":"TestRace"}
{"Action":"output","Test":"TestRace","Output":"fatal error: concurrent map writes\n"}
`
	leaving = `{"Action":"run","Test":"TestExit"}
{"Action":"output","Test":"TestExit","Output":"=== RUN   TestExit\n"}
`
	unbuildable = `{"ImportPath":"tiny [tiny.test]","Action":"build-output","Output":"b.go:2:23: undefined: x\n"}
{"ImportPath":"tiny [tiny.test]","Action":"build-fail"}
`
	pass = `{"Action":"output","Output":"ok  \ttiny\t0.003s\n"}
{"Action":"pass","Elapsed":0.003}
`
	fail = `{"Action":"output","Output":"FAIL\ttiny\t0.003s\n"}
{"Action":"fail","Elapsed":0.003}
`
	unbuiltFail = `{"Action":"output","Output":"FAIL\ttiny [build failed]\n"}
{"Action":"fail","Elapsed":0,"FailedBuild":"tiny [tiny.test]"}
`
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, json     string
		outcome        outcome
		passed, failed []string
		death          string
		says           []string // in the output that is kept
		silent         []string // not in there
	}{
		{name: "passed", json: good + pass, outcome: passed, passed: []string{"TestGood"}, silent: []string{"PASS: TestGood"}},
		{name: "no tests", json: pass, outcome: passed},
		{name: "skipped", json: good + skipped + pass, outcome: passed, passed: []string{"TestGood"}},
		{name: "failed", json: good + bad + fail, outcome: failed, passed: []string{"TestGood"}, failed: []string{"TestBad"},
			says: []string{"a_test.go:6: wrong", "FAIL: TestBad"}, silent: []string{"PASS: TestGood"}},
		{name: "panicked", json: good + dying + fail, outcome: died, passed: []string{"TestGood"}, failed: []string{"TestPanic"},
			death: "panic: oh no [recovered, repanicked]", says: []string{"a clue"}},
		{name: "failed, then panicked", json: bad + dying + fail, outcome: died, failed: []string{"TestBad", "TestPanic"},
			death: "panic: oh no [recovered, repanicked]"},
		{name: "timed out", json: good + hanging + fail, outcome: died, passed: []string{"TestGood"}, failed: []string{"TestHang"},
			death: "panic: test timed out after 1s"},
		{name: "the runtime gave up", json: fatal + fail, outcome: died, failed: []string{"TestRace"}, death: "fatal error: concurrent map writes"},
		{name: "exited in the middle", json: good + leaving + fail, outcome: died, passed: []string{"TestGood"}, failed: []string{"TestExit"},
			death: "it exited in the middle of TestExit"},
		{name: "not built", json: unbuildable + unbuiltFail, outcome: unbuilt, says: []string{"undefined: x"}},
		{name: "not built, as told at the end only", json: unbuiltFail, outcome: unbuilt},
		{name: "failed after its tests", json: good + fail, outcome: unclear, passed: []string{"TestGood"}},
		{name: "no JSON", json: "go: no such tool\n" + fail, outcome: unclear, says: []string{"go: no such tool"}},
		{name: "the last line is not ended", json: good + bad + strings.TrimSpace(fail), outcome: failed, passed: []string{"TestGood"}, failed: []string{"TestBad"}},
		{name: "a name twice", json: bad + strings.ReplaceAll(good, "TestGood", "TestBad") + fail, outcome: failed, failed: []string{"TestBad"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, err := parse(strings.NewReader(test.json))
			require.NoError(t, err)
			require.Equal(t, test.outcome.String(), run.outcome.String())
			require.Equal(t, test.passed, run.passed)
			require.Equal(t, test.failed, run.failed)
			require.Equal(t, test.death, run.death)
			for _, text := range test.says {
				require.Contains(t, run.output, text)
			}
			for _, text := range test.silent {
				require.NotContains(t, run.output, text)
			}
		})
	}
}

func TestParseOfABrokenPipe(t *testing.T) {
	broken := errors.New("broken pipe")
	_, err := parse(io.MultiReader(strings.NewReader(good), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
}

func TestCatches(t *testing.T) {
	check := func(names ...string) Check { return Check{Package: "./tiny", Tests: names} }
	expecting := func(death string, names ...string) Check {
		return Check{Package: "./tiny", Tests: names, Dies: death}
	}
	for _, test := range []struct {
		name   string
		check  Check
		json   string
		caught bool
		says   string // of the error; empty for none
	}{
		{"passed", check("TestGood"), good + pass, false, ""},
		{"failed", check("TestGood", "TestBad"), good + bad + fail, true, ""},
		{"has no such test", check("TestGood", "TestGone"), good + pass, false, "./tiny has no test TestGone"},
		{"skipped", check("TestSkipped"), skipped + pass, false, "TestSkipped"},
		{"any test", check(), pass, false, ""},
		{"died", check("TestPanic"), dying + fail, false, "panic: oh no"},
		{"died as expected", expecting("oh no", "TestPanic"), dying + fail, true, ""},
		{"died after what is expected", expecting("a clue", "TestPanic"), dying + fail, true, ""},
		{"died otherwise", expecting("timed out", "TestPanic"), dying + fail, false, "panic: oh no"},
		{"timed out", check("TestHang"), hanging + fail, false, "timed out after 1s"},
		{"was to die and failed", expecting("oh no", "TestBad"), bad + fail, true, ""},
		{"was to die and passed", expecting("oh no", "TestGood"), good + pass, false, ""},
		{"exited", check("TestExit"), leaving + fail, false, "exited in the middle of TestExit"},
		{"not built", check("TestGood"), unbuildable + unbuiltFail, false, "undefined: x"},
		{"failed without a test", check("TestGood"), good + fail, false, "failed without a failing test"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, err := parse(strings.NewReader(test.json))
			require.NoError(t, err)
			caught, err := test.check.catches(run)
			require.Equal(t, test.caught, caught)
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.says)
		})
	}
}

// A test's name must not run others that begin or end like it.
func TestRunNamesTheTestsExactly(t *testing.T) {
	require.Equal(t, "^(TestA|TestB)$", Check{Tests: []string{"TestA", "TestB"}}.run())
}
