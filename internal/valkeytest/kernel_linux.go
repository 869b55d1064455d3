package valkeytest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the process when the thread that starts
// it ends.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// stopped reports whether the process has come to a stop. The kernel stops it
// some time after SIGSTOP was sent.
func stopped(pid int) (bool, error) {
	state, err := state(pid)
	return state == 'T', err
}

// state returns the letter that stands for the process's state in
// /proc/pid/stat, behind the name in parentheses.
func state(pid int) (byte, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, fields, ok := bytes.Cut(stat, []byte(") "))
	if !ok || len(fields) == 0 {
		return 0, fmt.Errorf("valkeytest: unexpected /proc/%d/stat: %q", pid, stat)
	}
	return fields[0], nil
}
