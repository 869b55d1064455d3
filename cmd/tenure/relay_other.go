//go:build !unix

package main

import (
	"os"
	"syscall"
)

// forwarded lists the signals that are passed on to the command.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// outliveBrokenPipes does nothing: there is no signal for a broken pipe on this system.
func outliveBrokenPipes() {}
