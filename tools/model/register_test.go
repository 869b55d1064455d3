package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRealRegisterHolds(t *testing.T) {
	documented := page(t)
	for _, c := range RegisterDesigns() {
		if states(t, documented, c.Name) > mostStates {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			holds(t, c.Name, registers{c}, documented)
		})
	}
}

func TestRegisterDefectsAreFound(t *testing.T) {
	documented := page(t)
	for _, c := range RegisterMistakes() {
		t.Run(c.Name, func(t *testing.T) {
			violates(t, c.Name, WhatStandsIsRead, registers{c}, documented)
		})
	}
}

// States that differ in the names of nodes only are one, and no other.
func TestOneRegisterStateStandsForAllNames(t *testing.T) {
	p := registers{RegisterConfig{Nodes: 3, Holders: 1, Round: 1, Gate: 1, Restarts: 1, Restores: 1}}
	seen := map[regState]bool{}
	todo := p.initial()
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		p.steps(&s, func(_ event, next *regState, _ Property) { todo = append(todo, *next) })
	}
	representatives, distinct := map[fingerprint]bool{}, map[regState]bool{}
	for s := range seen {
		p.canonical(&s)
		representatives[identity(&s)] = true
		distinct[s] = true
	}
	require.Len(t, representatives, len(distinct), "states that differ have other fingerprints")
	r := search(p, 2, stateLimit)
	require.Equal(t, r.states, len(representatives), "the search visits each once, and all")
	require.Greater(t, len(seen), 3*len(representatives))
}
