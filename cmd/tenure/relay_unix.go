//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded are the signals that are passed on. SIGKILL and SIGSTOP cannot be caught, and SIGTSTP
// stops tenure as it stops others.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH,
}

// outliveBrokenPipes keeps SIGPIPE from ending this process when it writes a line and nobody reads
// the error stream any more: the command would be ended under a healthy lease. It holds until the
// end, also for the last line. The command gets SIGPIPE as it would without tenure, because a
// signal that is caught is not caught by a program that is started.
func outliveBrokenPipes() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
