package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tool is the go command, at the root of a repository.
type tool struct {
	root    string
	timeout time.Duration // of a test binary
}

// buildTime is what compiling may take on top of a timeout.
const buildTime = 5 * time.Minute

// workspace has the go command join the modules of the repository, also where somebody has turned
// that off: a check may be in another module than what it checks.
const workspace = "GOWORK="

// repositoryRoot returns the directory of the workspace that dir is in, or of the module where
// there is no workspace.
func repositoryRoot(dir string) (string, error) {
	cmd := exec.Command("go", "env", "GOWORK", "GOMOD")
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), workspace)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("mutants: go env GOWORK GOMOD: %w", err)
	}
	work, mod, _ := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n")
	switch {
	case work != "":
		return filepath.Dir(work), nil
	case filepath.Base(mod) == "go.mod":
		return filepath.Dir(mod), nil
	}
	return "", errors.New("mutants: this is no module: run it in the repository")
}

// noTraces keeps property tests from writing the case that failed into the directory of their
// package, where it would be tried again, and mistaken for a case of the code as it is
// (pgregory.net/rapid, flag rapid.nofailfile).
const noTraces = "RAPID_NOFAILFILE=true"

// command makes a command that is interrupted when ctx ends.
func (t *tool) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.root
	cmd.Env = append(cmd.Environ(), noTraces, workspace)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// build compiles a program with an overlay.
func (t *tool) build(ctx context.Context, overlay, pkg, output string) error {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	out, err := t.command(ctx, "go", "build", "-overlay="+overlay, "-o", output, pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mutants: %s does not compile: %w\n%s", pkg, err, out)
	}
	return nil
}

// test runs the tests of a package that match a regular expression a number of times, with an
// overlay if that is not empty. Programs that a test builds are broken, too.
func (t *tool) test(ctx context.Context, overlay, pkg, names string, times int) (*testRun, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout+buildTime)
	defer cancel()
	args := []string{"test", "-json", "-vet=off", "-count=" + strconv.Itoa(times), "-timeout=" + t.timeout.String(), "-run=" + names}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	var out bytes.Buffer
	cmd := t.command(ctx, "go", append(args, pkg)...)
	if overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("mutants: go test %s: %w", pkg, context.Cause(ctx))
	}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("mutants: go test %s: %w", pkg, err)
	}
	run, parseErr := parse(&out)
	if parseErr == nil && err != nil && run.outcome == passed {
		run.outcome = unclear // a go command that failed before it tested anything
	}
	return run, parseErr
}
