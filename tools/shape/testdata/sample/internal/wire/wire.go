package wire

import _ "embed"

type (
	Op   int
	Size int

	Owner struct{ Size int }
)

const (
	Get Op = iota
	Put
)

const Small Size = 1

var Table = [...]int{Get: 1, Put: 2}

//go:embed get.lua
var script string

func (op Op) isGet() bool { return op == Get }
