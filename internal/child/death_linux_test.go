package child_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However this process ends, its children end too, frozen ones as well.
func TestChildrenDieWithTheProcess(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=parent")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var running, frozen int
	_, scanErr := fmt.Fscan(out, &running, &frozen)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.NoError(t, scanErr)
	for _, pid := range []int{running, frozen} {
		require.NotZero(t, pid)
		require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, time.Millisecond)
	}
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
