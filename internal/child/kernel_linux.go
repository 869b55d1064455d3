package child

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// setAttributes has the kernel kill the process when the thread ends that starts it, and keeps the
// terminal's signals from it.
func setAttributes(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// isStopped reports whether a process has come to a stop, which is some time after SIGSTOP was
// sent. Its state is the letter behind the name, in parentheses, in /proc/pid/stat.
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
