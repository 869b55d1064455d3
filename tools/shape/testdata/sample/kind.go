package sample

import (
	"github.com/tenure-dev/tenure/tools/shape/testdata/sample/internal/node"
	"github.com/tenure-dev/tenure/tools/shape/testdata/sample/internal/wire"
)

func kinds(a, b wire.Op, size wire.Size) (n int) {
	if a == wire.Get || wire.Put != b { // two places
		n++
	}
	if a > wire.Get && a == b && b < wire.Put { // two
		n++
	}
	switch a {
	case wire.Get, wire.Put: // two
	default:
	}
	if size == wire.Small || b+wire.Put == b { // none
		n++
	}
	if node.Ask(a, 0) {
		n++
	}
	return n + wire.Table[wire.Get]
}
