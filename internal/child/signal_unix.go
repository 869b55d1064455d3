//go:build unix

package child

import "syscall"

const (
	signalStop     = syscall.SIGSTOP
	signalContinue = syscall.SIGCONT
)
