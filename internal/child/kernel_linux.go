package child

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// setAttributes has the kernel kill the process when the thread that starts it ends, and keeps the
// terminal's signals from the process.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// isStopped reports whether a process has stopped, which takes some time after SIGSTOP. Its state
// is the letter after the name, which is in parentheses, in /proc/pid/stat.
func isStopped(pid int) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false, err
	}
	_, fields, ok := bytes.Cut(stat, []byte(") "))
	if !ok || len(fields) == 0 {
		return false, fmt.Errorf("child: unexpected /proc/%d/stat: %q", pid, stat)
	}
	return fields[0] == 'T', nil
}
