package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// verdict is what came of a mutant.
type verdict struct {
	mutant   *Mutant
	caughtBy []string // tests; none if it survived
	chaos    bool     // the chaos program caught it too
	err      error    // it shows nothing: rotted, does not compile, dies in another way than expected
}

func (v *verdict) survived() bool { return v.err == nil && len(v.caughtBy) == 0 }

func (v *verdict) String() string {
	switch {
	case v.err != nil:
		return fmt.Sprintf("ERROR    %-32s %v", v.mutant.Name, v.err)
	case v.survived():
		return fmt.Sprintf("SURVIVED %-32s %s", v.mutant.Name, v.mutant.Rule)
	}
	by := strings.Join(v.caughtBy, ", ")
	if v.chaos {
		by += ", chaos"
	}
	return fmt.Sprintf("caught   %-32s %s", v.mutant.Name, by)
}

// runner runs mutants.
type runner struct {
	tool     tool
	parallel int
	chaos    bool   // run the chaos program too
	try      string // tests to run instead of those that the mutants name; empty for those
	out      io.Writer

	mu sync.Mutex // serialises writes to out
}

// baseline runs every check of the mutants with nothing broken. A test that fails by itself catches
// nothing.
func (r *runner) baseline(ctx context.Context, list []Mutant) error {
	names := make(map[string][]string) // by package
	for _, m := range list {
		for _, c := range m.Checks {
			names[c.Package] = append(names[c.Package], c.Tests...)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(names)) {
		slices.Sort(names[pkg])
		c := Check{Package: pkg, Tests: slices.Compact(names[pkg])}
		run, err := r.tool.test(ctx, "", pkg, c.run(), 1)
		if err != nil {
			return err
		}
		if run.outcome != passed {
			return fmt.Errorf("mutants: nothing is broken and %s %v: %s\n%s", pkg, run.outcome, strings.Join(run.failed, ", "), run.output)
		}
		if missing := c.missing(run); len(missing) > 0 {
			return fmt.Errorf("mutants: %s has no test %s", pkg, strings.Join(missing, ", "))
		}
		r.print(fmt.Sprintf("passed   %s: %d tests with nothing broken", pkg, len(c.Tests)))
	}
	return nil
}

// all judges the mutants, some at a time, and prints each verdict as it is found. The result is in
// the list's order.
func (r *runner) all(ctx context.Context, list []Mutant) []*verdict {
	verdicts := make([]*verdict, len(list))
	places := make(chan int)
	var work sync.WaitGroup
	for range r.parallel {
		work.Go(func() {
			for i := range places {
				verdicts[i] = r.judge(ctx, &list[i])
				r.print(verdicts[i].String())
			}
		})
	}
	for i := range list {
		places <- i
	}
	close(places)
	work.Wait()
	return verdicts
}

func (r *runner) print(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.out, line)
}

// judge breaks the rule and runs the checks.
func (r *runner) judge(ctx context.Context, m *Mutant) *verdict {
	v := &verdict{mutant: m}
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		v.err = fmt.Errorf("mutants: %w", err)
		return v
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(r.tool.root, dir)
	if err != nil {
		v.err = err
		return v
	}
	for _, c := range m.Checks {
		names := c.run()
		if r.try != "" {
			names, c.Tests = r.try, nil
		}
		run, err := r.tool.test(ctx, overlay, c.Package, names, max(c.Often, 1))
		if err != nil {
			v.err = err
			return v
		}
		caught, err := c.catches(run)
		v.err = errors.Join(v.err, err)
		if caught {
			v.caughtBy = append(v.caughtBy, run.failed...)
		}
	}
	if r.chaos && m.Chaos != "" && v.err == nil {
		v.chaos, v.err = r.storm(ctx, overlay, dir, m.Chaos)
		if v.err == nil && !v.chaos {
			v.err = fmt.Errorf("mutants: the chaos program with %s does not catch it", m.Chaos)
		}
	}
	return v
}
