package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everything visits all states of a system under all their names.
func everything[S comparable](sys system[S]) map[S]bool {
	seen := make(map[S]bool)
	for todo := []S{sys.initial()}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		sys.steps(&s, func(_ event, next *S, _ Property) { todo = append(todo, *next) })
	}
	return seen
}

// standsForAll requires that states that differ in names only are one, and no others.
func standsForAll[S comparable](t *testing.T, sys system[S]) (all, representatives int) {
	t.Helper()
	states, fingerprints, distinct := everything(sys), make(map[fingerprint]bool), make(map[S]bool)
	for s := range states {
		sys.canonical(&s)
		require.True(t, states[s], "a representative is a state that can be reached")
		fingerprints[identity(&s)] = true
		distinct[s] = true
		again := s
		sys.canonical(&again)
		require.Equal(t, s, again, "a representative stands for itself")
	}
	require.Len(t, fingerprints, len(distinct), "states that differ have other fingerprints")
	require.Equal(t, search(sys, 2, stateLimit).states, len(fingerprints), "the search visits each once, and all")
	return len(states), len(fingerprints)
}

func TestOneStateStandsForAllNames(t *testing.T) {
	all, one := standsForAll(t, newProtocol(restarted.but("", func(c *Config) { c.Extends, c.NoStrays = false, true })))
	require.Greater(t, all, 8*one)
	all, one = standsForAll(t, registers{RegisterConfig{Nodes: 3, Holders: 1, Round: 1, Gate: 1, Restarts: 1, Restores: true}})
	require.Greater(t, all, 3*one)
}

// The reductions that merge states in which something differs that has no consequences must not
// hide anything.
func TestReductionsHideNothing(t *testing.T) {
	for _, c := range []Config{
		restarted.but("holds", func(c *Config) { c.Extends, c.NoStrays = false, true }),
		leases.but("asked again", func(c *Config) { c.Extends, c.NoStrays, c.Restarts, c.AsksOn = false, true, 0, 1 }),
		leases.but("extended, heard late", func(c *Config) { c.NoStrays, c.Restarts, c.Starts = true, 0, 2 }),
		knownSteady.but("tokens hold", func(c *Config) { c.Validity, c.Skew = 1, 0 }),
		restarted.with(NoGate, none),
		restarted.with(BeforeOnly, none),
		restarted.with(NoDrift, none),
		restarted.with(Overtaking, none),
		clockless.with(NotStrict, none),
	} {
		t.Run(c.Name, func(t *testing.T) {
			p, whole := newProtocol(c), newProtocol(c)
			whole.exact = true
			r, w := search(p, 2, stateLimit), search(whole, 2, stateLimit)
			t.Logf("%d states, %d without reductions", r.states, w.states)
			assert.Equal(t, w.broken, r.broken)
			assert.Equal(t, w.exhausted, r.exhausted)
			assert.Less(t, r.states, w.states)
			if w.broken != none {
				assert.Equal(t, w.depth, r.depth)
			}
		})
	}
}
