//go:build !race

package redlock_test

const underRace = false

func often(n int) int { return n }
