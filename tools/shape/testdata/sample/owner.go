// Package sample is measured by a test. Every line of it is counted.
package sample

import "sync/atomic"

// Owner is the largest struct: Several has as many fields, and comes later.
type Owner struct {
	size int
	kids []*kid
	toys map[tag]*toy
	peer *Peer
	box  *box
	crate
	last atomic.Pointer[bag]
}

/*
Another is the same type, and comes first.
*/
type Another = Owner

func (o *Owner) fill() int { return o.box.weight } // box is no parent, although it holds Owner
