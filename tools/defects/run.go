package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// testTime bounds the tests of a defect, and the tests of a package with nothing broken. Tests that
// take longer catch nothing.
const testTime = 10 * time.Minute

// runner runs tests of the repository at root. It has a directory for what it writes.
type runner struct{ root, dir string }

// outcome is the result of tests.
type outcome struct {
	passed, failed []string // names of tests
	died           bool     // they panicked or deadlocked, as the end of output tells
	output         string
}

// test compiles the tests of a package, with an overlay if there is one, and runs those that match
// a pattern. A program that a test builds has the defect, too.
func (r *runner) test(ctx context.Context, overlay, pkg, pattern string) (*outcome, error) {
	binary := filepath.Join(r.dir, "it.test")
	if err := r.goTool(ctx, overlay, "test", "-c", "-tags=long", "-vet=off", "-ldflags=-s -w", "-o", binary, pkg); err != nil {
		return nil, err
	}
	cmd := r.command(ctx, overlay, binary, "-test.v", "-test.paniconexit0", "-test.timeout="+testTime.String(), "-test.run="+pattern)
	cmd.Dir = filepath.Join(r.root, filepath.FromSlash(pkg))
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("defects: %s: %w", pkg, err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o := read(string(out))
	if strings.Contains(o.output, "panic: test timed out") {
		return nil, fmt.Errorf("defects: the tests of %s took longer than %v", pkg, testTime)
	}
	if (err != nil) != (o.died || len(o.failed) > 0) {
		return nil, fmt.Errorf("defects: %s ended with %v, and its tests did not say why:\n%s", pkg, cmp.Or(err, errors.New("no error")), out)
	}
	return o, nil
}

// ends matches the end of a test, and dies the death of a program.
var (
	ends = regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\w+) `)
	dies = regexp.MustCompile(`(?m)^(panic|fatal error): `)
	// noise matches lines that only tell which test goes on.
	noise = regexp.MustCompile(`(?m)^ *(===|--- PASS:) .*\n`)
)

// read reads what go test -v prints.
func read(output string) *outcome {
	o := &outcome{output: output, died: dies.MatchString(output)}
	for _, end := range ends.FindAllStringSubmatch(output, -1) {
		if end[1] == "PASS" {
			o.passed = append(o.passed, end[2])
		} else {
			o.failed = append(o.failed, end[2])
		}
	}
	return o
}

// command returns a command that runs at the root of the repository, in its workspace, and is
// interrupted when ctx ends.
func (r *runner) command(ctx context.Context, overlay, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	// Property tests store a failed case beside their files, unless they are told not to.
	cmd.Env = append(cmd.Environ(), "GOWORK=", "RAPID_NOFAILFILE=true")
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// goTool runs the go command, which compiles.
func (r *runner) goTool(ctx context.Context, overlay string, args ...string) error {
	if out, err := r.command(ctx, overlay, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("defects: go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// baselines runs the tests of defects with nothing broken.
func (r *runner) baselines(ctx context.Context, list []defect) error {
	tests := make(map[string][]string) // by package
	for _, d := range list {
		tests[d.pkg] = append(tests[d.pkg], strings.Split(d.tests, "|")...)
	}
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		slices.Sort(tests[pkg])
		tests[pkg] = slices.Compact(tests[pkg])
		if err := r.baseline(ctx, pkg, tests[pkg]); err != nil {
			return err
		}
		fmt.Printf("passed   %s: %d tests with nothing broken\n", pkg, len(tests[pkg]))
	}
	return nil
}

// baseline runs tests of a package with nothing broken. A test that fails by itself catches
// nothing.
func (r *runner) baseline(ctx context.Context, pkg string, tests []string) error {
	o, err := r.test(ctx, "", pkg, "^("+strings.Join(tests, "|")+")$")
	switch {
	case err != nil:
		return err
	case o.died || len(o.failed) > 0:
		return fmt.Errorf("defects: nothing is broken, and %s fails: %v\n%s", pkg, o.failed, noise.ReplaceAllString(o.output, ""))
	}
	for _, name := range tests {
		if !slices.Contains(o.passed, name) {
			return fmt.Errorf("defects: %s: %s was not run: there is no such test, or it was skipped", pkg, name)
		}
	}
	return nil
}

// judge runs the tests with a defect, and returns the names of the tests that caught it; "" if it
// survived.
func (r *runner) judge(ctx context.Context, d *defect) (caughtBy string, err error) {
	overlay, err := d.overlay(r.root, r.dir)
	if err != nil {
		return "", err
	}
	// A test may build a program of the broken code. It must not fail only because that does not
	// compile.
	for _, e := range d.edits {
		if path := "./" + filepath.ToSlash(filepath.Dir(e.file)); strings.HasSuffix(e.file, ".go") && path != d.pkg {
			if err := r.goTool(ctx, overlay, "build", "-o", os.DevNull, path); err != nil {
				return "", err
			}
		}
	}
	o, err := r.test(ctx, overlay, d.pkg, "^("+d.tests+")$")
	switch {
	case err != nil:
		return "", err
	case len(o.failed) > 0:
		return strings.Join(o.failed, ", "), nil
	case o.died:
		return "a panic", nil
	case len(o.passed) == 0:
		return "", fmt.Errorf("defects: %s has no test %s", d.pkg, d.tests)
	}
	return "", nil
}
