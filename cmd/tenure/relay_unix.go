//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// forwarded lists the signals that are passed on to the command. SIGKILL and SIGSTOP cannot be
// caught. SIGTSTP stops tenure, as it stops other programs.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH,
}

// outliveBrokenPipes keeps SIGPIPE from ending this process when it writes to an error stream that
// has no reader any more. The command would otherwise be ended under a healthy lease. The effect
// lasts until the process exits, so it includes the last line. The command still gets SIGPIPE as it
// would without tenure, because exec resets a caught signal to its default.
func outliveBrokenPipes() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}
