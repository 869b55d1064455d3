package valkeytest_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func TestServersDieWithTheProcess(t *testing.T) {
	for _, end := range []string{"panic", "kill"} {
		t.Run(end, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), victimVariable+"="+end, "TMPDIR="+t.TempDir())
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			require.NoError(t, cmd.Start())
			var running, frozen int
			_, scanErr := fmt.Fscan(out, &running, &frozen)
			if end == "kill" || scanErr != nil {
				require.NoError(t, cmd.Process.Kill())
			}
			require.Error(t, cmd.Wait())
			require.NoError(t, scanErr, stderr.String())
			if end == "panic" {
				require.Contains(t, stderr.String(), "the victim panics")
			}
			for _, pid := range []int{running, frozen} {
				require.NotZero(t, pid)
				require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, time.Millisecond)
			}
		})
	}
}

func TestCloseEndsStoppedServers(t *testing.T) {
	f, err := valkeytest.New(2)
	require.NoError(t, err)
	pids := []int{f.Node(0).Pid(), f.Node(1).Pid()}
	require.NoError(t, f.Node(0).Freeze())
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	for i, pid := range pids {
		require.True(t, gone(pid))
		require.Zero(t, f.Node(i).Pid())
	}
	require.ErrorContains(t, f.Node(0).Restart(false), "its fleet is closed")
}

// gone reports whether a process has ended. What nobody has reaped yet counts.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err)
	}
	_, fields, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(fields, []byte("Z")) || bytes.HasPrefix(fields, []byte("X"))
}
