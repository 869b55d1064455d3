package register

import (
	_ "embed"

	"github.com/tenure-dev/tenure/internal/bridge"
)

//go:embed text.lua
var textLua string

//go:embed read.lua
var readLua string

//go:embed write.lua
var writeLua string

//go:embed restore.lua
var restoreLua string

var (
	readScript    = bridge.NewScript(textLua + readLua)
	writeScript   = bridge.NewScript(textLua + writeLua)
	restoreScript = bridge.NewScript(textLua + restoreLua)
)
