package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process as /proc/pid/stat shows it (proc_pid_stat(5)).
type process struct {
	pid, parent, group int
	state              byte   // R, S, D, T, Z, ...
	began              uint64 // start time in clock ticks since boot; unique together with the pid
}

// readProcess reads a process. It returns false if there is no such process.
func readProcess(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The second field is the name in parentheses. The name may contain any character.
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return process{}, false
	}
	f := bytes.Fields(stat[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return process{}, false
	}
	p := process{pid: pid, state: f[0][0]}
	p.parent, _ = strconv.Atoi(string(f[1])) // always a number, as are the next fields
	p.group, _ = strconv.Atoi(string(f[2]))
	p.began, err = strconv.ParseUint(string(f[19]), 10, 64)
	return p, err == nil
}

// dead reports whether the process has ended, whether or not it was reaped.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' || p.state == 'x' }

// signal sends a signal to the process, and never to another process that has got its pid. It
// reports true if this process may not signal it.
func (p process) signal(s syscall.Signal) (refused bool) {
	found, err := os.FindProcess(p.pid) // holds a pidfd, since Linux 5.3
	if err != nil {
		return false
	}
	defer func() { _ = found.Release() }()
	if same, ok := readProcess(p.pid); !ok || same.began != p.began {
		return false
	}
	return errors.Is(found.Signal(s), syscall.EPERM)
}

// adoptOrphans makes this process the parent of orphans among its descendants (prctl(2)).
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// family is the set of all processes below a root process, apart from exceptions.
type family struct {
	root     int
	excluded map[int]uint64 // by pid, when a process began that is no member, nor are its descendants
	spared   int            // pid that is no member, though its descendants are
}

// members returns the members that have not ended.
func (f *family) members() (found []process) {
	children := map[int][]process{}
	all, _ := os.ReadDir("/proc") // Missing reports it if /proc cannot be read
	for _, entry := range all {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				children[p.parent] = append(children[p.parent], p)
			}
		}
	}
	for next := []int{f.root}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			if began, is := f.excluded[p.pid]; is && began == p.began {
				continue
			}
			if !p.dead() && p.pid != f.spared {
				found = append(found, p)
			}
			next = append(next, p.pid)
		}
		delete(children, next[0])
	}
	return found
}

// signal sends a signal to all members for which the function which returns true, or to all if it
// is nil. It returns how many members got it, and the pids of those that this process may not
// signal. SIGKILL is repeated until there are no members, because a member may start further
// processes before it dies.
func (f *family) signal(s syscall.Signal, which func(process) bool) (sent int, refused []int) {
	for _, p := range f.members() {
		if which != nil && !which(p) {
			continue
		}
		sent++
		if p.signal(s) {
			refused = append(refused, p.pid)
		}
	}
	return sent, refused
}

// self is the file of this program, even if it has been replaced on disk.
const self = "/proc/self/exe"

// Missing says what this system cannot do for a command under a lease. It returns nil if nothing is
// missing.
func Missing() []string {
	var missing []string
	if err := adoptOrphans(); err != nil {
		missing = append(missing, fmt.Sprintf("orphans cannot be adopted (%v): processes that leave the command's group with setsid or a double fork may outlive the lease", err))
	}
	if p, ok := readProcess(os.Getpid()); !ok || p.pid == 0 {
		missing = append(missing, "/proc cannot be read: processes that leave the command's group with setsid or a double fork may outlive the lease")
	}
	return missing
}

// settle is the pause between two looks at processes that are being ended.
const settle = 5 * time.Millisecond
