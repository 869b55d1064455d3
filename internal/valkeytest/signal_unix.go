//go:build unix

package valkeytest

import "syscall"

const (
	signalStop      = syscall.SIGSTOP
	signalContinue  = syscall.SIGCONT
	signalTerminate = syscall.SIGTERM
)
