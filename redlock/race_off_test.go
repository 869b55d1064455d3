//go:build !race

package redlock_test

const underRace = false
