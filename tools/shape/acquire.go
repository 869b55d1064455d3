package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	acquireProgram = "github.com/tenure-dev/tenure/tools/shape/acquire"
	// acquireCalls is how many calls are looked at. A function is on the way if most of them meet
	// it. That leaves out periodic work that falls into one of them by chance.
	acquireCalls = 9
)

// runAcquire returns the functions that an uncontended TryAcquire meets in root and the packages
// below its internal directory, as PACKAGE/FILE:LINE. Some run on goroutines of the Quorum, and the
// way ends when all nodes have answered. It builds program acquire with counters of coverage and
// runs it. A function without statements has no counter.
func runAcquire(ctx context.Context, root string) ([]string, error) {
	dir, err := os.MkdirTemp("", "shape-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "acquire")
	// Without a counter of its own the program could not clear those of others.
	counted := strings.Join([]string{root, root + "/internal/...", acquireProgram}, ",")
	if _, err := output(ctx, "go", "build", "-cover", "-covermode=atomic", "-coverpkg="+counted, "-o", program, acquireProgram); err != nil {
		return nil, err
	}
	calls := make([]string, acquireCalls)
	for i := range calls {
		calls[i] = filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(calls[i], 0o700); err != nil {
			return nil, err
		}
	}
	if _, err := output(ctx, program, calls...); err != nil {
		return nil, err
	}
	times := make(map[string]int)
	for _, call := range calls {
		report, err := output(ctx, "go", "tool", "covdata", "func", "-i="+call)
		if err != nil {
			return nil, err
		}
		for _, function := range metFunctions(report, root) {
			times[function]++
		}
	}
	met := slices.DeleteFunc(slices.Sorted(maps.Keys(times)), func(f string) bool { return times[f] <= acquireCalls/2 })
	if len(met) == 0 {
		return nil, errors.New("TryAcquire meets no function of " + root)
	}
	return met, nil
}

// output runs a program and returns its output.
func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, &stderr)
	}
	return string(out), nil
}

// metFunctions returns the functions of root and the packages below that a report of go tool
// covdata func has with more than 0.0%.
func metFunctions(report, root string) (met []string) {
	for line := range strings.Lines(report) {
		fields := strings.Fields(line) // PACKAGE/FILE:LINE:, the function's name, percent
		if strings.HasPrefix(line, root+"/") && fields[len(fields)-1] != "0.0%" {
			met = append(met, strings.TrimSuffix(fields[0], ":"))
		}
	}
	return met
}

// metIn counts the functions that are in package pkg, and their files.
func metIn(pkg string, met []string) (s spots) {
	files := make(map[string]bool)
	for _, function := range met {
		file, _, _ := strings.Cut(function, ":")
		if path.Dir(file) == pkg {
			s.n++
			files[file] = true
		}
	}
	s.files = len(files)
	return s
}
