//go:build !unix

package child

import "syscall"

// os.Process.Signal returns an error for these here.
const (
	signalStop     = syscall.Signal(0x13)
	signalContinue = syscall.Signal(0x12)
)
