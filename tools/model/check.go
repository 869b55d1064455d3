package model

import "runtime"

// stateLimit keeps a search within the memory of a small machine.
const stateLimit = 20_000_000

// Outcome is what checking a configuration gave.
type Outcome struct {
	Config Config
	result[state]
	Trace string // the counterexample, a line a step
}

// Check visits all states of a configuration until a property is violated. It uses all processors.
func Check(c Config) Outcome {
	p := newProtocol(c)
	r := search[state](p, runtime.GOMAXPROCS(0), stateLimit)
	return Outcome{c, r, report(p, r.trace)}
}
