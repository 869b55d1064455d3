package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// grid is a walk on a board, to the right by one or three and up by one. It breaks at a field, if
// that is on the board.
type grid struct{ size, x, y int }

type field struct{ x, y int }

func (g grid) initial() field { return field{} }

func (g grid) steps(s *field, yield func(event, *field, Property)) {
	for k, next := range []field{{s.x + 1, s.y}, {s.x + 3, s.y}, {s.x, s.y + 1}} {
		if next.x >= g.size || next.y >= g.size {
			continue
		}
		broken := none
		if next.x == g.x && next.y == g.y {
			broken = TokenOrder
		}
		yield(event{arg: int8(k)}, &next, broken)
	}
}

func (g grid) canonical(*field) {}

func TestSearchFindsAShortestTrace(t *testing.T) {
	for _, workers := range []int{1, 4} {
		r := search(grid{60, 47, 11}, workers, 1_000_000)
		require.Equal(t, TokenOrder, r.broken)
		require.False(t, r.exhausted)
		require.Equal(t, 47/3+47%3+11, r.depth)
		require.Len(t, r.trace, r.depth+1, "the initial state and one for each step")
		for k, m := range r.trace[1:] {
			from := r.trace[k].state
			want := [...]field{{from.x + 1, from.y}, {from.x + 3, from.y}, {from.x, from.y + 1}}[m.event.arg]
			require.Equal(t, want, m.state, "step %d", k+1)
		}
		assert.Equal(t, field{47, 11}, r.trace[r.depth].state)
	}
}

func TestSearchVisitsEverythingOnce(t *testing.T) {
	for _, workers := range []int{1, 4} {
		r := search(grid{size: 300, x: -1}, workers, 1_000_000)
		assert.Equal(t, none, r.broken)
		assert.True(t, r.exhausted)
		assert.Equal(t, 300*300, r.states)
		assert.Equal(t, 299*300+297*300+300*299, r.transitions)
		assert.Equal(t, 299/3+299%3+299, r.depth)
	}
}

func TestSearchThatMeetsItsLimitIsNotExhaustive(t *testing.T) {
	r := search(grid{size: 300, x: -1}, 2, 1000)
	assert.False(t, r.exhausted)
	assert.Greater(t, r.states, 1000)
	assert.Less(t, r.states, 300*300)
}
