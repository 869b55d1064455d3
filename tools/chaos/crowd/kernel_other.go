//go:build !linux

package crowd

import (
	"os/exec"
	"syscall"
)

// os.Process.Signal refuses these, or not; servers whose clocks can be moved exist on Linux only.
const (
	signalStop     = syscall.Signal(0x13)
	signalContinue = syscall.Signal(0x12)
)

func setAttributes(*exec.Cmd) {}
