package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everything visits all states of a protocol under all their names.
func everything(p *protocol) map[state]bool {
	seen := make(map[state]bool)
	todo := p.initial()
	for _, s := range todo {
		seen[s] = true
	}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		p.steps(&s, func(_ event, next *state, _ Property) {
			if !seen[*next] {
				seen[*next] = true
				todo = append(todo, *next)
			}
		})
	}
	return seen
}

func TestOneStateStandsForAllNames(t *testing.T) {
	p := newProtocol(restarted.but("", func(c *Config) { c.Extends, c.NoStrays = false, true }))
	all := everything(p)
	representatives := make(map[fingerprint]bool)
	distinct := make(map[state]bool)
	for s := range all {
		p.canonical(&s)
		require.True(t, all[s], "a representative is a state that can be reached")
		representatives[identity(&s)] = true
		distinct[s] = true
		again := s
		p.canonical(&again)
		require.Equal(t, s, again, "a representative stands for itself")
	}
	assert.Len(t, representatives, len(distinct), "states that differ have other fingerprints")
	r := search(p, 2, stateLimit)
	assert.Equal(t, r.states, len(representatives), "the search visits each once, and all")
	assert.Greater(t, len(all), 8*len(representatives), "of %d states", len(all))
}

// The reductions that merge states in which something differs that has no consequences must not
// hide anything.
func TestReductionsHideNothing(t *testing.T) {
	small := tokens.but("", func(c *Config) { c.NoStrays, c.Extends, c.Skews, c.Restarts = true, false, nil, 0 })
	for _, c := range []Config{
		restarted.but("holds", func(c *Config) { c.Extends, c.NoStrays = false, true }),
		leases.but("asked again", func(c *Config) { c.Extends, c.NoStrays, c.Restarts, c.AsksOn = false, true, 0, 1 }),
		leases.but("extended, heard late", func(c *Config) { c.NoStrays, c.Restarts, c.Starts = true, 0, 2 }),
		small.but("tokens hold", func(*Config) {}),
		restarted.with(NoGate, none),
		restarted.with(BeforeOnly, none),
		restarted.with(NoDrift, none),
		restarted.with(Overtaking, none),
		small.with(NoAgreement, none),
		tokens.but("", func(c *Config) { c.NoStrays, c.Extends = true, false }).with(HintTooLow, none),
		clockless.with(AgreeLoose, none),
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
