package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMembersDesignHolds(t *testing.T) {
	documented := page(t)
	for _, c := range MemberDesigns() {
		if states(t, documented, c.Name) > mostStates {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			o := CheckMembers(c)
			holds(t, c.Name, o.result, o.Trace, documented)
		})
	}
}

func TestMemberDefectsAreFound(t *testing.T) {
	documented := page(t)
	for _, m := range MemberMistakes() {
		t.Run(m.Name, func(t *testing.T) {
			o := CheckMembers(m.MemberConfig)
			violates(t, m.Name, m.Violates, o.result, o.Trace, documented)
		})
	}
}

// replacement looks for a state in which processes with two lists are admitted beside each other.
type replacement struct{ members }

func (r replacement) steps(s *memberState, yield func(event, *memberState, Property)) {
	r.members.steps(s, func(e event, next *memberState, _ Property) {
		broken := none
		if next.procs[0].phase == live && r.counted(next, 1) == letterSet("abd") && next.procs[1].phase == live &&
			s.nodes[0].left[2] == 0 && s.nodes[2].left[2] != 0 && !next.nodes[2].links[0].cut {
			broken = OneLock
		}
		yield(e, next, broken)
	})
}

// A list in which a dead node is replaced is admitted beside the old one, which does not count the
// node when it is back. That it holds all the same is the first of the designs.
func TestADeadNodeIsReplacedBesideTheOldList(t *testing.T) {
	p := members{memberDesign}
	r := search[memberState](replacement{p}, 2, stateLimit)
	require.Equal(t, OneLock, r.broken, "is never admitted")
	t.Logf("admitted beside:\n%s", p.report(r.trace))
	last := r.trace[len(r.trace)-1].state
	assert.Equal(t, letterSet("ab"), p.counted(&last, 0))
}
