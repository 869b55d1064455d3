package main

import "strings"

// Mutant is one rule of the protocol and the edit that breaks it. The file on disk stays as it is:
// the go command is told to read the broken one instead (go help build: -overlay).
type Mutant struct {
	Name   string
	Rule   string  // what holds without it, in one sentence
	Edits  []Edit  // more than one for a rule that is kept in several places
	Checks []Check // any of them has to fail

	// What finds the same break in other ways; for the table only.
	Model string // the defect of tools/model
	Chaos string // arguments of the chaos program, which has to report a violation; run with -chaos only
}

// Edit is a change to the line that carries an anchor.
type Edit struct {
	Anchor string
	Old    string // the text that is replaced, which is on the line once; empty for the whole line
	New    string // may have several lines
}

// Check is a number of tests of one package.
type Check struct {
	Package string   // relative to the root of the repository, and maybe in another module: ./redlock
	Tests   []string // names of top-level tests
	// Dies is what the break makes the tests panic with. A panic, a deadlock or a timeout counts
	// only if it is expected.
	Dies string
	// Often is how many times the tests run, where they notice the break most times and not always;
	// 0 means once.
	Often int
}

// run is the regular expression for -run.
func (c Check) run() string { return "^(" + strings.Join(c.Tests, "|") + ")$" }
