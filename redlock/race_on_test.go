//go:build race

package redlock_test

const underRace = true

// often is how often a test repeats what it does n times without the race detector, which sees what
// it looks for in each round, and makes them several times slower.
func often(n int) int { return max(n/5, 1) }
