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

// planted are the defects that the torture program has to find as well, each by a workload.
var planted = map[string]string{
	"gate-off":                             "leases",
	"extended-without-a-quorum":            "leases",
	"foreign-key-released":                 "leases",
	"token-repeated":                       "leases",
	"token-without-agreement":              "leases",
	"other-list-let-in":                    "leases",
	"failed-look-ends-connections":         "leases",
	"granted-tick-is-owed":                 "five",
	"tick-is-slept-over":                   "three",
	"paused-tick-is-owed":                  "five",
	"only-the-latest-is-caught-up":         "three",
	"late-tick-is-never-run":               "three",
	"stopped-is-complete":                  "three",
	"rollout-taken-back-changes-the-phase": "three",
	"new-schedule-has-missed-ticks":        "five",
}

// finding matches the first violation that the torture program reports.
var finding = regexp.MustCompile(`VIOLATION (after [^:]+: [^:]+):`)

// torture runs a workload for a minute with a planted defect, and returns the workload, and the
// time and kind of the first violation; "" for none. The findings depend on an idle machine.
func (r *runner) torture(ctx context.Context, d *defect) (foundBy string, err error) {
	overlay, err := d.overlay(r.root, r.dir)
	if err != nil {
		return "", err
	}
	binary, journals, workload := filepath.Join(r.dir, "torture"), filepath.Join(r.dir, "journals"), planted[d.name]
	if err := errors.Join(os.RemoveAll(journals), r.goTool(ctx, overlay, "build", "-o", binary, "./tools/torture")); err != nil {
		return "", err
	}
	out, err := r.command(ctx, "", binary, "-workload", workload, "-duration", "60s", "-seed", "1", "-keep", journals).CombinedOutput()
	exit := new(exec.ExitError)
	if first := finding.FindSubmatch(out); errors.As(err, &exit) && exit.ExitCode() == 1 && first != nil {
		return fmt.Sprintf("%s, %s", workload, first[1]), nil
	} else if err != nil {
		return "", fmt.Errorf("defects: %s: torture: %w\n%s", d.name, err, out)
	}
	return "", nil
}
