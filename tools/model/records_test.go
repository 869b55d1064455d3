package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quickRecords are those that are searched under the race detector.
var quickRecords = map[string]bool{
	"records, four nodes": true, "a node that does not know votes": true, "old data counts as known": true,
}

func TestRecordsDesignHolds(t *testing.T) {
	documented := page(t)
	for _, c := range RecordDesigns() {
		if raceEnabled && !quickRecords[c.Name] {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			o := CheckRecords(c)
			holds(t, c.Name, o.result, o.Trace, documented)
		})
	}
}

func TestRecordDefectsAreFound(t *testing.T) {
	documented := page(t)
	for _, c := range RecordMistakes() {
		if raceEnabled && !quickRecords[c.Name] {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			o := CheckRecords(c)
			violates(t, c.Name, GrantedOnce, o.result, o.Trace, documented)
		})
	}
}

// States that differ in names only are one, and no other.
func TestOneRecordStateStandsForAllNames(t *testing.T) {
	p := records{recordDesign.but("", func(c *RecordConfig) { c.Restarts = 1 })}
	seen := map[recordState]bool{}
	todo := p.initial()
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		p.steps(&s, func(_ event, next *recordState, _ Property) { todo = append(todo, *next) })
	}
	representatives, distinct := map[fingerprint]bool{}, map[recordState]bool{}
	for s := range seen {
		p.canonical(&s)
		representatives[p.identity(&s)] = true
		distinct[s] = true
	}
	require.Len(t, representatives, len(distinct), "states that differ have other fingerprints")
	r := search[recordState](p, 2, stateLimit)
	assert.Equal(t, r.states, len(representatives), "the search visits each once, and all")
	assert.Greater(t, len(seen), 5*len(representatives))
}
