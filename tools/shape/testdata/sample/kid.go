package sample

import "github.com/tenure-dev/tenure/tools/shape/testdata/sample/internal/wire"

type kid struct {
	owner *Owner // a parent: a slice there holds kids
	next  *kid
	past  Owner       // no pointer
	far   *wire.Owner // of another package
}

// Away from its type.
func (o *Owner) adopt(k *kid) {
	k.owner.size = 1            // of a parent
	k.owner.toys[tag{}].play(k) // of a parent, and a method of another file
	k.next.next = nil           // a list
	k.past.size, k.far.Size = 2, 2
}
