// Package tiny is what the tests of the mutants tool break.
package tiny

// Door opens to whoever has the key.
type Door struct{ open bool }

// Open opens the door, and reports whether it did.
func (d *Door) Open(key int) bool {
	if key != 7 { //mutant:caught,caught-in-another-module,rotted,chaos-does-not-see-it
		return false
	}
	d.open = true //mutant:unbuilt
	return true
}

// Visitors returns how many may enter.
func (d *Door) Visitors() int {
	if d.open {
		return 3 //mutant:survives,dies,dies-unexpectedly,caught-the-third-time
	}
	return 0
}
