package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	chaosPackage   = "./tools/chaos"
	chaosViolation = 1 // its exit status when it found one
)

// storm builds the chaos program with an overlay and reports whether it finds a violation.
func (r *runner) storm(ctx context.Context, overlay, dir, args string) (violated bool, err error) {
	program := filepath.Join(dir, "chaos")
	if err := r.tool.build(ctx, overlay, chaosPackage, program); err != nil {
		return false, err
	}
	cmd := r.tool.command(ctx, program, append(strings.Fields(args), "-keep", filepath.Join(dir, "journals"))...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() == nil && errors.As(err, &exit) && exit.ExitCode() == chaosViolation:
		return true, nil
	}
	return false, fmt.Errorf("mutants: chaos %s: %w\n%s", args, err, out)
}

// calm runs what storms the mutants name with nothing broken, each once, and returns an error if
// one finds a violation.
func (r *runner) calm(ctx context.Context, overlay, dir string, list []Mutant) error {
	done := make(map[string]bool)
	for _, m := range list {
		if m.Chaos == "" || done[m.Chaos] {
			continue
		}
		done[m.Chaos] = true
		violated, err := r.storm(ctx, overlay, filepath.Join(dir, fmt.Sprint(len(done))), m.Chaos)
		if err != nil {
			return err
		}
		if violated {
			return fmt.Errorf("mutants: nothing is broken and chaos %s finds a violation", m.Chaos)
		}
		r.print("passed   chaos " + m.Chaos + " with nothing broken")
	}
	return nil
}
