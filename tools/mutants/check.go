package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// outcome is what came of a run of go test.
type outcome int

const (
	passed  outcome = iota
	failed          // a test failed
	died            // the test binary panicked, dead-locked, ran into its timeout, or ended without a word
	unbuilt         // it did not compile
	unclear         // it failed, and no test did
)

func (o outcome) String() string {
	return [...]string{"passed", "failed", "died", "does not compile", "failed without a failing test"}[o]
}

// testRun is what go test -json told.
type testRun struct {
	outcome outcome
	passed  []string // names of top-level tests
	failed  []string // likewise, and those that had not ended when the binary died
	death   string   // the first line of the panic, or what else ended the binary
	output  string   // of the tests that failed, and what belongs to no test
}

// event is a line of go test -json (go doc test2json, go help buildjson).
type event struct {
	Action      string
	Test        string
	Output      string
	FailedBuild string
}

// parse reads the output of go test -json.
func parse(r io.Reader) (*testRun, error) {
	run := &testRun{}
	verdicts := make(map[string]string)         // of top-level tests
	output := make(map[string]*strings.Builder) // likewise; under "" what belongs to none
	broken := false
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Output: string(line)} // the go command itself, about what kept it from building
			}
			test, _, isSubtest := strings.Cut(e.Test, "/")
			if output[test] == nil {
				output[test] = &strings.Builder{}
			}
			output[test].WriteString(e.Output)
			switch {
			case e.Action == "build-fail" || e.FailedBuild != "":
				run.outcome = unbuilt
			case e.Action == "output" && run.death == "" && isDeath(e.Output):
				run.death = strings.TrimSpace(e.Output)
			case e.Action == "fail" && e.Test == "":
				broken = true
			case e.Test != "" && !isSubtest && slices.Contains([]string{"run", "pass", "fail", "skip"}, e.Action):
				if verdicts[e.Test] != "fail" { // two packages in one directory may have tests of one name
					verdicts[e.Test] = e.Action
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("mutants: reading what go test says: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		switch verdicts[name] {
		case "pass":
			run.passed = append(run.passed, name)
		case "fail", "run":
			run.failed = append(run.failed, name)
			run.output += output[name].String()
		}
		if verdicts[name] == "run" && run.death == "" {
			run.death = "it exited in the middle of " + name
		}
	}
	if output[""] != nil {
		run.output += output[""].String()
	}
	switch {
	case run.outcome == unbuilt:
	case run.death != "":
		run.outcome = died
	case len(run.failed) > 0:
		run.outcome = failed
	case broken:
		run.outcome = unclear
	}
	return run, nil
}

// isDeath recognises the line with which the runtime ends a process.
func isDeath(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// catches reports whether the run shows that the tests of the check notice the break, or an error
// if it shows nothing.
func (c Check) catches(run *testRun) (bool, error) {
	switch run.outcome {
	case passed:
		if missing := c.missing(run); len(missing) > 0 {
			return false, fmt.Errorf("mutants: %s has no test %s", c.Package, strings.Join(missing, ", "))
		}
		return false, nil
	case failed:
		return true, nil
	case died:
		if c.Dies != "" && strings.Contains(run.output, c.Dies) {
			return true, nil
		}
		return false, fmt.Errorf("mutants: %s died, which is not what is expected of it: %s", c.Package, run.death)
	default:
		return false, fmt.Errorf("mutants: %s %v:\n%s", c.Package, run.outcome, run.output)
	}
}

// missing returns the tests of the check that did not pass.
func (c Check) missing(run *testRun) []string {
	return slices.DeleteFunc(slices.Clone(c.Tests), func(name string) bool { return slices.Contains(run.passed, name) })
}
