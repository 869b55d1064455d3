//go:build !unix

package main

import (
	"os"
	"syscall"
)

// forwarded are the signals that are passed on.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// outliveBrokenPipes does nothing: no signal tells of a broken pipe here.
func outliveBrokenPipes() {}
