//go:build !linux

package valkeytest

import "os/exec"

// dieWithParent does nothing: only Linux ends a process with its parent.
func dieWithParent(*exec.Cmd) {}

// stopped cannot tell, and trusts that SIGSTOP was quick.
func stopped(int) (bool, error) { return true, nil }
