package model

import "testing"

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
