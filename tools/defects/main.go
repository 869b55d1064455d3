// Defects breaks one promise of the library, or of the command, at a time, and shows that a test
// notices. docs/testing.md says how to read what it prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// The exit codes.
const (
	allCaught = iota
	survived  // a defect was not noticed
	trouble   // a defect shows nothing, or a test fails with nothing broken
)

func main() {
	run := flag.String("run", "", "only the defects whose names match this `regexp`")
	tortured := flag.Bool("torture", false, "run the torture program against those that it has to find, a minute each, in place of tests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := judgeAll(ctx, *run, *tortured)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = trouble
	}
	os.Exit(code)
}

// judgeAll judges the defects whose names match, by their tests or by the torture program.
func judgeAll(ctx context.Context, pattern string, tortured bool) (int, error) {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return trouble, err
	}
	list := slices.DeleteFunc(defects(), func(d defect) bool { return !names.MatchString(d.name) || tortured && d.workload == "" })
	if len(list) == 0 {
		return trouble, errors.New("defects: there is no such defect")
	}
	root, err := repository()
	if err != nil {
		return trouble, err
	}
	dir, err := os.MkdirTemp("", "defects-")
	if err != nil {
		return trouble, err
	}
	defer os.RemoveAll(dir)
	r, began := &runner{root, dir}, time.Now()
	judge := r.torture
	if !tortured {
		judge = r.judge
		if err := r.baselines(ctx, list); err != nil {
			return trouble, err
		}
	}
	code, caught := allCaught, 0
	for _, d := range list {
		if ctx.Err() != nil {
			break
		}
		began := time.Now()
		by, err := judge(ctx, &d)
		took := time.Since(began).Seconds()
		switch {
		case err != nil:
			code = trouble
			fmt.Printf("TROUBLE  %s: %v\n", d.name, err)
		case by == "":
			code = max(code, survived)
			fmt.Printf("SURVIVED %s (%.0f s): %s\n", d.name, took, d.promise)
		default:
			caught++
			fmt.Printf("caught   %s (%.0f s): %s\n", d.name, took, by)
		}
	}
	fmt.Printf("%d of %d were caught, in %v\n", caught, len(list), time.Since(began).Round(time.Second))
	return code, context.Cause(ctx)
}

// repository returns the directory of the workspace.
func repository() (string, error) {
	cmd := exec.Command("go", "env", "GOWORK")
	cmd.Env = append(os.Environ(), "GOWORK=") // also if it is off
	file, err := cmd.Output()
	if err != nil || len(file) < 2 {
		return "", errors.Join(errors.New("defects: run it in the repository"), err)
	}
	return filepath.Dir(string(file)), nil
}
