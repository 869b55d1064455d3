package supervise

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DelegatedCgroup is the cgroup of version 2 that this process is in, if it may make others below
// it: if that was delegated to it (systemd's Delegate=yes marks it), or is this user's own. Empty
// if not. To make a cgroup below one of systemd's that is not delegated breaks systemd's rules.
func DelegatedCgroup() string {
	dir := OwnCgroup()
	if dir == "" {
		return ""
	}
	for _, mark := range []string{"trusted.delegate", "user.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, mark, value); err == nil && string(value[:n]) == "1" {
			return dir
		}
	}
	var stat unix.Stat_t
	if unix.Stat(dir, &stat) == nil && stat.Uid != 0 && int(stat.Uid) == os.Geteuid() {
		return dir
	}
	return ""
}

// OwnCgroup is the directory of this process's cgroup of version 2, or empty.
func OwnCgroup() string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return cgroupDir(string(groups), string(mounts))
}

// cgroupDir finds it in /proc/self/cgroup, whose line of version 2 begins with "0::", and in
// /proc/self/mountinfo, where the fourth field is the mount's root and the fifth its place.
func cgroupDir(groups, mounts string) string {
	var path string
	found := false
	for l := range strings.Lines(groups) {
		if p, ok := strings.CutPrefix(strings.TrimSuffix(l, "\n"), "0::"); ok {
			path, found = p, true
		}
	}
	if !found || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/..") {
		return ""
	}
	lines := bufio.NewScanner(bytes.NewReader([]byte(mounts)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		f := strings.Fields(before)
		if !ok || len(f) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		if below, ok := strings.CutPrefix(path, strings.TrimSuffix(f[3], "/")); ok && (below == "" || below[0] == '/') {
			return filepath.Join(f[4], below)
		}
	}
	return ""
}

// makeCgroup makes one below another. It is the caller's to remove.
func makeCgroup(parent string) (string, error) {
	for n := 0; ; n++ {
		dir := filepath.Join(parent, fmt.Sprintf("tenure-%d-%d", os.Getpid(), n))
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, os.ErrExist) && n < 1000 {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("supervise: cannot make a cgroup: %w", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
			_ = os.Remove(dir)
			return "", errors.New("supervise: this system cannot kill a cgroup, which Linux can since 5.14")
		}
		return dir, nil
	}
}

// killCgroup kills all processes in one, whatever their users.
func killCgroup(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
}

// removeCgroup removes an empty one. Processes that were killed need a moment to go; one with a
// process that does not die stays.
func removeCgroup(dir string) {
	if dir == "" {
		return
	}
	for until := time.Now().Add(removeWithin); errors.Is(os.Remove(dir), syscall.EBUSY) && time.Now().Before(until); {
		time.Sleep(removeWithin / 200)
	}
}

// removeWithin is for how long the last processes of a cgroup are waited for.
const removeWithin = 2 * time.Second
