package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quickMarks are those that are searched under the race detector.
var quickMarks = map[string]bool{
	"marks, a node is flushed": true, "marks, on all nodes, power cuts and an empty node": true,
	"a node that does not know marks votes": true, "a pause returns at once": true, "one refusal skips a number": true,
}

func TestMarksDesignHolds(t *testing.T) {
	documented := page(t)
	for _, c := range MarkDesigns() {
		if raceEnabled && !quickMarks[c.Name] {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			o := CheckMarks(c)
			holds(t, c.Name, o.result, o.Trace, documented)
		})
	}
}

func TestMarkDefectsAreFound(t *testing.T) {
	documented := page(t)
	for _, m := range MarkMistakes() {
		if raceEnabled && !quickMarks[m.Name] {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			o := CheckMarks(m.MarkConfig)
			violates(t, m.Name, m.Violates, o.result, o.Trace, documented)
		})
	}
}

func TestRulesThatTheModelOfMarksDoesNotNeed(t *testing.T) {
	documented := page(t)
	for _, c := range MarkSpares() {
		if raceEnabled {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			o := CheckMarks(c)
			t.Logf("%s %.1f s, violates: %v", o.row(c.Name), o.elapsed.Seconds(), o.broken)
			require.Equal(t, none, o.broken, "now it is needed, and belongs to the defects:\n%s", o.Trace)
			require.True(t, o.exhausted)
			assert.Contains(t, documented, c.Name)
		})
	}
}

// spreading has nodes take what others know of a later version.
type spreading struct{ marks }

func (p spreading) steps(s *markState, yield func(event, *markState, Property)) {
	p.marks.steps(s, yield)
	for n := range p.Nodes {
		for m := range p.Nodes {
			from, to := &s.nodes[n], &s.nodes[m]
			if from.known && to.known && from.version > to.version {
				t := *s
				t.nodes[m].mark = from.mark
				yield(event{kind: mkStray, node: int8(m)}, &t, none)
			}
		}
	}
}

// That nodes are told what others know of a later version is no step of the model: it is a write
// that arrives late.
func TestMarksMayBeSpread(t *testing.T) {
	if raceEnabled {
		t.Skip("too slow")
	}
	p := marks{markDesign.but("", func(c *MarkConfig) { c.Restarts = 1 })}
	without, with := search[markState](p, 2, stateLimit), search[markState](spreading{p}, 2, stateLimit)
	t.Logf("%d states, %d where marks are spread", without.states, with.states)
	require.Equal(t, none, with.broken)
	require.True(t, with.exhausted)
}

// States that differ in names only are one, and no other.
func TestOneMarkStateStandsForAllNames(t *testing.T) {
	p := marks{markDesign.but("", func(c *MarkConfig) { c.Operations, c.Restarts, c.Restores = 1, 1, 2 })}
	seen := map[markState]bool{}
	todo := p.initial()
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		p.steps(&s, func(_ event, next *markState, _ Property) { todo = append(todo, *next) })
	}
	representatives, distinct := map[fingerprint]bool{}, map[markState]bool{}
	for s := range seen {
		p.canonical(&s)
		representatives[p.identity(&s)] = true
		distinct[s] = true
	}
	require.Len(t, representatives, len(distinct), "states that differ have other fingerprints")
	r := search[markState](p, 2, stateLimit)
	assert.Equal(t, r.states, len(representatives), "the search visits each once, and all")
	assert.Greater(t, len(seen), 4*len(representatives))
}
