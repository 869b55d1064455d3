package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// finding matches the first violation that the torture program reports.
var finding = regexp.MustCompile(`VIOLATION (after [^:]+: [^:]+):`)

// torture runs the workload of a defect for a minute with that defect. It returns the workload, and
// the time and kind of the first violation; "" for none. The findings depend on an idle machine.
func (r *runner) torture(ctx context.Context, d *defect) (foundBy string, err error) {
	overlay, err := d.overlay(r.root, r.dir)
	if err != nil {
		return "", err
	}
	binary, journals := filepath.Join(r.dir, "torture"), filepath.Join(r.dir, "journals")
	if err := errors.Join(os.RemoveAll(journals), r.goTool(ctx, overlay, "build", "-o", binary, "./tools/torture")); err != nil {
		return "", err
	}
	out, err := r.command(ctx, "", binary, "-workload", d.workload, "-duration", "60s", "-seed", "1", "-keep", journals).CombinedOutput()
	exit := new(exec.ExitError)
	if first := finding.FindSubmatch(out); errors.As(err, &exit) && exit.ExitCode() == 1 && first != nil {
		return fmt.Sprintf("%s, %s", d.workload, first[1]), nil
	} else if err != nil {
		return "", fmt.Errorf("defects: %s: torture: %w\n%s", d.name, err, out)
	}
	return "", nil
}
