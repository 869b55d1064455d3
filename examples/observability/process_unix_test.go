//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// running starts the program and waits for its leader. It returns the replicas' process ids.
func running(t *testing.T) (*session, []int) {
	t.Helper()
	s := launch(t, nil)
	require.Eventually(t, func() bool { return strings.Contains(s.output(), `leads "poller"`) }, soon, 10*time.Millisecond)
	var pids []int
	for _, found := range regexp.MustCompile(`\(pid ([0-9]+)\) started\n`).FindAllStringSubmatch(s.output(), -1) {
		pid, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		require.False(t, gone(pid))
		pids = append(pids, pid)
	}
	require.Len(t, pids, 3)
	t.Cleanup(func() {
		for _, pid := range pids {
			if !gone(pid) { // the test has failed
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return s, pids
}

// gone tells whether a process has ended. One that was orphaned may remain as a zombie where nobody reaps it.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(after, []byte("Z"))
}

func TestSignalEndsEverything(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s, pids := running(t)
			require.NoError(t, s.cmd.Process.Signal(signal))
			require.Equal(t, exitOK, s.end(t), "%s\n%s", s.output(), s.stderr.String())
			for _, pid := range pids {
				require.True(t, gone(pid), "replica with pid %d", pid)
			}
		})
	}
}

// The replicas' input ends with the supervisor, however it ended.
func TestNoReplicaSurvivesTheSupervisor(t *testing.T) {
	t.Parallel()
	s, pids := running(t)
	require.NoError(t, s.cmd.Process.Kill())
	for _, pid := range pids {
		require.Eventually(t, func() bool { return gone(pid) }, soon, 10*time.Millisecond, "replica with pid %d", pid)
	}
}

// One replica that fails ends everything.
func TestReplicaThatFails(t *testing.T) {
	t.Parallel()
	s, pids := running(t)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGKILL))
	require.Equal(t, exitFailed, s.end(t), s.output())
	require.Contains(t, s.stderr.String(), fmt.Sprintf("replica b (pid %d) failed: signal: killed", pids[1]))
	for _, pid := range pids {
		require.True(t, gone(pid), "replica with pid %d", pid)
	}
}
