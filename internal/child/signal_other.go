//go:build !unix

package child

import "syscall"

// os.Process.Signal refuses these here, with an error.
const (
	signalStop     = syscall.Signal(0x13)
	signalContinue = syscall.Signal(0x12)
)
