package crowd

import (
	"os/exec"
	"syscall"
)

const (
	signalStop     = syscall.SIGSTOP
	signalContinue = syscall.SIGCONT
)

// setAttributes makes the kernel kill the process when its parent ends, and keeps the terminal's signals from it: the
// parent ends it in order.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
