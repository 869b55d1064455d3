//go:build !nightly

package model

// mostStates is how many states a design may have, as testdata/searches.md says, to be searched: make
// model searches all.
const mostStates = 300_000
