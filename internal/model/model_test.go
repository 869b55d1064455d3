package model

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quick are the designs that are searched under the race detector, which makes everything ten times slower. They
// look at every part of the protocol.
var quick = map[string]bool{
	"leases": true, "leases, five nodes, not extended": true, "leases, commands in any order": true,
	"tokens, other clocks": true, "tokens without clocks": true,
}

// page is the documentation that prints what these tests see.
func page(t *testing.T) string {
	text, err := os.ReadFile("../../docs/model.md")
	require.NoError(t, err)
	return string(text)
}

func (o Outcome) row() string {
	return fmt.Sprintf("| %s | %d | %d | %d |", o.Config.Name, o.states, o.transitions, o.depth)
}

func TestRealDesignHolds(t *testing.T) {
	documented := page(t)
	for _, c := range Designs() {
		if raceEnabled && !quick[c.Name] {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			o := Check(c)
			t.Logf("%s %.1f s, violates: %v", o.row(), o.elapsed.Seconds(), o.broken)
			require.Equal(t, none, o.broken, "violated after:\n%s", o.Trace)
			require.True(t, o.exhausted, "the search ended at its limit of %d states", stateLimit)
			assert.Contains(t, documented, o.row(), "docs/model.md prints other numbers")
		})
	}
}

func TestDefectsAreFound(t *testing.T) {
	documented := page(t)
	for _, m := range Mistakes() {
		t.Run(m.Name, func(t *testing.T) {
			o := Check(m.Config)
			t.Logf("%d states, %.1f s, violates %v after %d steps:\n%s", o.states, o.elapsed.Seconds(), o.broken, o.depth, o.Trace)
			require.Equal(t, m.Violates, o.broken)
			require.Equal(t, o.depth, strings.Count(o.Trace, "\n"), "the counterexample is complete")
			row := fmt.Sprintf("| %s | %v | %d | %d |", m.Name, o.broken, o.depth, o.states)
			assert.Contains(t, documented, row, "docs/model.md prints other numbers")
		})
	}
}

// A rule that the model does not need is named in docs/model.md, so that nobody takes the model for its proof.
func TestRulesThatTheModelDoesNotNeed(t *testing.T) {
	documented := page(t)
	for _, c := range Spares() {
		if raceEnabled {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			o := Check(c)
			t.Logf("%s %.1f s, violates: %v", o.row(), o.elapsed.Seconds(), o.broken)
			require.Equal(t, none, o.broken, "now it is needed, and belongs to the defects:\n%s", o.Trace)
			require.True(t, o.exhausted)
			assert.Contains(t, documented, c.Name)
		})
	}
}

// The counterexample that docs/model.md explains is the one that is found.
func TestPageHasTheCounterexample(t *testing.T) {
	c := leases.with(RefillUngated, MutualExclusion)
	p := newProtocol(c)
	text := report(p, search[state](p, 1, stateLimit).trace) // with one worker it is always the same
	assert.Contains(t, page(t), text)
}
