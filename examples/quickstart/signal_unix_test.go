//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	startUp  = 20 * time.Second
	shutDown = 10 * time.Second
)

// running starts the program and waits for its first run. It returns the replicas' process ids.
func running(t *testing.T, mode mode) (*session, []int) {
	t.Helper()
	s := launch(t, nil, "-duration", "1m", "-mode", string(mode))
	runs := regexp.MustCompile(`runs tick`)
	require.Eventually(t, func() bool { return runs.MatchString(s.output()) }, startUp, 10*time.Millisecond)
	var pids []int
	for _, found := range regexp.MustCompile(`\(pid ([0-9]+)\) +started\n`).FindAllStringSubmatch(s.output(), -1) {
		pid, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		require.False(t, gone(pid))
		pids = append(pids, pid)
	}
	require.Len(t, pids, 3)
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
		for _, mode := range []mode{modeElector, modeLocker} {
			t.Run(fmt.Sprintf("%v/%s", signal, mode), func(t *testing.T) {
				t.Parallel()
				s, pids := running(t, mode)
				require.NoError(t, s.cmd.Process.Signal(signal))
				begin := time.Now()
				require.Equal(t, exitInterrupted, s.end(t), "%s\n%s", s.output(), s.stderr.String())
				require.Less(t, time.Since(begin), shutDown)
				for _, pid := range pids {
					require.True(t, gone(pid), "replica with pid %d", pid)
				}
			})
		}
	}
}

// The replicas' input ends with the supervisor, however it ended.
func TestNoReplicaSurvivesTheSupervisor(t *testing.T) {
	t.Parallel()
	s, pids := running(t, modeElector)
	require.NoError(t, s.cmd.Process.Kill())
	for _, pid := range pids {
		require.Eventually(t, func() bool { return gone(pid) }, shutDown, 10*time.Millisecond, "replica with pid %d", pid)
	}
}
