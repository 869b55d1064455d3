package model

import "testing"

func TestRosterDesignHolds(t *testing.T) {
	documented := page(t)
	for _, c := range RosterDesigns() {
		if states(t, documented, c.Name) > mostStates {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			o := CheckRoster(c)
			holds(t, c.Name, o.result, o.Trace, documented)
		})
	}
}

func TestRosterDefectsAreFound(t *testing.T) {
	documented := page(t)
	for _, m := range RosterMistakes() {
		t.Run(m.Name, func(t *testing.T) {
			o := CheckRoster(m.RosterConfig)
			violates(t, m.Name, m.Violates, o.result, o.Trace, documented)
		})
	}
}
