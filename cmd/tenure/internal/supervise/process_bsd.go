//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package supervise

import (
	"os"
	"syscall"
	"time"
)

// process is one that may be signalled: here only a group is.
type process struct{ pid, group int }

func isStopped(int) bool { return false }

func adoptOrphans() error { return nil }

// family is the command's process group: what leaves it is not found here.
type family struct {
	root     int
	group    int
	excluded map[identity]bool
	spared   int
}

type identity struct{ pid int }

func (p process) identity() identity { return identity{p.pid} }

func (f *family) members() []process {
	if f.group == 0 || syscall.Kill(-f.group, 0) != nil {
		return nil
	}
	return []process{{f.group, f.group}}
}

func (f *family) signal(s syscall.Signal, which func(process) bool) (sent int, refused []int) {
	for _, p := range f.members() {
		if which != nil && !which(p) {
			continue
		}
		sent++
		if syscall.Kill(-p.group, s) == syscall.EPERM {
			refused = append(refused, p.pid)
		}
	}
	return sent, refused
}

func (f *family) kill() (sent int, refused []int) { return f.signal(syscall.SIGKILL, nil) }

func wakeWhenParentDies(*syscall.SysProcAttr) {}

func dieWithParent(*syscall.SysProcAttr) {}

func self() (string, error) { return os.Executable() }

// Missing says what this system does not do for a command under a lease.
func Missing() []string {
	return []string{
		"this system does not end the command when the watchdog is killed, nor wake a stopped watchdog: with tenure killed too the command outlives the lease",
		"this system does not adopt orphans: processes that leave the command's group with setsid or a double fork outlive the lease",
	}
}

const settle = 5 * time.Millisecond
