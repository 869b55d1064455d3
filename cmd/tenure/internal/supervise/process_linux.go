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

// process is one, as /proc/pid/stat shows it (proc_pid_stat(5)).
type process struct {
	pid, parent, group int
	state              byte   // R, S, D, T, Z, ...
	began              uint64 // in ticks of the clock since the machine was started: with the pid it is unique
}

// readProcess reads one; false if there is none.
func readProcess(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The second field is the name in parentheses, and may have anything in it.
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return process{}, false
	}
	f := bytes.Fields(stat[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return process{}, false
	}
	p := process{pid: pid, state: f[0][0]}
	p.parent, _ = strconv.Atoi(string(f[1])) // a number, as those that follow
	p.group, _ = strconv.Atoi(string(f[2]))
	p.began, err = strconv.ParseUint(string(f[19]), 10, 64)
	return p, err == nil
}

// dead reports whether it does nothing any more, reaped or not.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' || p.state == 'x' }

// signal sends one, to this process and none that has its number by now. It reports whether the
// process may not be signalled.
func (p process) signal(s syscall.Signal) (refused bool) {
	found, err := os.FindProcess(p.pid) // which holds on to it, since Linux 5.3
	if err != nil {
		return false
	}
	defer func() { _ = found.Release() }()
	if same, ok := readProcess(p.pid); !ok || same.began != p.began {
		return false
	}
	return errors.Is(found.Signal(s), syscall.EPERM)
}

// adoptOrphans has the kernel give this process the orphans among its descendants (prctl(2)).
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// family is all that is below a process, and may be signalled.
type family struct {
	root     int
	excluded map[identity]bool // are no members, and neither are those below them
	spared   int               // is no member, but those below it are
}

// identity is a process, and no other that gets its number later.
type identity struct {
	pid   int
	began uint64
}

func (p process) identity() identity { return identity{p.pid, p.began} }

// members are those that live.
func (f *family) members() (found []process) {
	children := map[int][]process{}
	all, _ := os.ReadDir("/proc") // without which Missing says what is missing
	for _, entry := range all {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				children[p.parent] = append(children[p.parent], p)
			}
		}
	}
	for next := []int{f.root}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			if f.excluded[p.identity()] {
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

// signal sends one to all members that a condition holds for, and returns how many there were, and
// which of them may not be signalled.
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

// kill sends SIGKILL to all members, and returns how many there were, and which may not be
// signalled. It is to be repeated until there are none: each may start others meanwhile.
func (f *family) kill() (sent int, refused []int) {
	return f.signal(syscall.SIGKILL, nil)
}

// self is the file of this program, also if it was replaced meanwhile.
const self = "/proc/self/exe"

// Missing says what this system does not do for a command under a lease; nothing if it does all.
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

// settle is the pause between looks at processes that are being ended.
const settle = 5 * time.Millisecond
