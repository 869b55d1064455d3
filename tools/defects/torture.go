package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// planted are the defects that the torture program has to find as well, each by a workload.
var planted = []struct{ name, workload string }{
	{"gate-off", "leases"},
	{"extended-without-a-quorum", "leases"},
	{"foreign-key-released", "leases"},
	{"token-repeated", "leases"},
	{"token-without-agreement", "leases"},
	{"other-list-let-in", "leases"},
	{"failed-look-ends-connections", "leases"},
	{"granted-tick-is-owed", "five"},
	{"tick-is-slept-over", "three"},
	{"paused-tick-is-owed", "five"},
	{"only-the-latest-is-caught-up", "three"},
	{"late-tick-is-never-run", "three"},
	{"stopped-is-complete", "three"},
	{"rollout-taken-back-changes-the-phase", "three"},
	{"new-schedule-has-missed-ticks", "five"},
}

// finding matches the first violation that the torture program reports.
var finding = regexp.MustCompile(`VIOLATION (after [^:]+: [^:]+):`)

// torture runs the torture program for a minute with each planted defect whose name matches. It
// runs one after the other, because the findings depend on an idle machine.
func torture(ctx context.Context, names *regexp.Regexp) (code int, err error) {
	root, err := repository()
	if err != nil {
		return trouble, err
	}
	r := &runner{root}
	for _, p := range planted {
		if !names.MatchString(p.name) {
			continue
		}
		list := defects()
		i := slices.IndexFunc(list, func(d defect) bool { return d.name == p.name })
		found, err := r.torture(ctx, &list[i], p.workload)
		switch {
		case err != nil:
			return trouble, err
		case found == "":
			code = survived
			fmt.Printf("SURVIVED %s: %s\n", p.name, p.workload)
		default:
			fmt.Printf("caught   %s: %s, %s\n", p.name, p.workload, found)
		}
	}
	return code, nil
}

// torture runs one workload with a defect, and returns the kind and time of the first violation; ""
// for none.
func (r *runner) torture(ctx context.Context, d *defect, workload string) (string, error) {
	dir, err := os.MkdirTemp("", "defects-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := d.overlay(r.root, dir)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "torture")
	if err := r.goTool(ctx, overlay, "build", "-o", binary, "./tools/torture"); err != nil {
		return "", err
	}
	cmd := r.command(ctx, "", binary, "-workload", workload, "-duration", "60s", "-seed", "1", "-keep", filepath.Join(dir, "journals"))
	out, err := cmd.CombinedOutput()
	exit := new(exec.ExitError)
	if first := finding.FindSubmatch(out); errors.As(err, &exit) && exit.ExitCode() == 1 && first != nil {
		return string(first[1]), nil
	} else if err != nil {
		return "", fmt.Errorf("defects: %s: torture: %w\n%s", d.name, err, out)
	}
	return "", nil
}
