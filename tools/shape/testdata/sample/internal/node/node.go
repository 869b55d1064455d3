package node

import "github.com/tenure-dev/tenure/tools/shape/testdata/sample/internal/wire"

type Op int

const none Op = 0

func Ask(op wire.Op, other Op) bool { return op == wire.Put || other == none || more() }
