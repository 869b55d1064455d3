//go:build unix

package main

import (
	"os"
	"syscall"
)

// forwarded are the signals that are passed on. SIGKILL and SIGSTOP cannot be caught, and SIGTSTP
// stops tenure as it stops others.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH,
}
