package main

import "strings"

// Mutant is one rule of the protocol and the edit of a file that breaks it. The file on disk stays as it is: the go
// command is told to read the broken one instead (go help build: -overlay).
type Mutant struct {
	Name string
	Rule string // what holds without it, in one sentence
	File string // relative to the root of the module, with slashes
	Old  string // the text that is replaced; it occurs exactly once in the file
	New  string
	Also []Edit // for a rule that is kept in two places

	Checks []Check // any of them has to fail

	// What finds the same break in other ways; for the table only.
	Model string // the defect of internal/model
	Chaos string // arguments of the chaos program, which has to report a violation; run with -chaos only
}

// Edit is a change to a file, as in a Mutant.
type Edit struct{ File, Old, New string }

// edits returns all of them.
func (m *Mutant) edits() []Edit {
	return append([]Edit{{m.File, m.Old, m.New}}, m.Also...)
}

// Check is a number of tests of one package.
type Check struct {
	Package string   // relative to the root of the module: ./redlock
	Tests   []string // names of top-level tests
	// Dies is what the break makes the tests panic with. A panic, a deadlock or a timeout counts only if it is expected.
	Dies string
	// Often is how many times the tests run, where they notice the break most times and not always; 0 means once.
	Often int
}

// tests are top-level tests of a package in this module.
func tests(pkg string, names ...string) Check { return Check{Package: pkg, Tests: names} }

// gaveUp is what synctest panics with when a test fails while something in its bubble still waits.
const gaveUp = "deadlock: main bubble goroutine has exited"

// The packages under test.
const (
	redlock   = "./redlock"
	elector   = "./elector"
	scheduler = "./scheduler"
	clock     = "./internal/clock"
)

// run is the regular expression for -run.
func (c Check) run() string { return "^(" + strings.Join(c.Tests, "|") + ")$" }

// mutants returns all of them, in the order of the table.
func mutants() []Mutant {
	var all []Mutant
	for _, list := range [][]Mutant{
		gateMutants, quarantineMutants, clockMutants, serverMutants,
		roundMutants, acquireMutants, tokenMutants,
		leaseMutants, extendMutants, refillMutants, releaseMutants, queueMutants, waitMutants, onceMutants,
		electorMutants, schedulerMutants, tickMutants,
	} {
		all = append(all, list...)
	}
	return all
}
