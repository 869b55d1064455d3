package main

import (
	"testing"

	"example.com/tiny"
)

func TestOfTheModuleBesideIt(t *testing.T) {
	if new(tiny.Door).Open(8) {
		t.Error("opened by a wrong key")
	}
}
