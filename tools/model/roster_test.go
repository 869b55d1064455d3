package model

import "testing"

func TestRosterDesignHolds(t *testing.T) {
	documented := page(t)
	for _, c := range RosterDesigns() {
		if states(t, documented, c.Name) > mostStates {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			holds(t, c.Name, roster{c}, documented)
		})
	}
}

func TestRosterDefectsAreFound(t *testing.T) {
	documented := page(t)
	for _, m := range RosterMistakes() {
		t.Run(m.Name, func(t *testing.T) {
			violates(t, m.Name, m.Only, roster{m}, documented)
		})
	}
}
