//go:build nightly

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/examples/internal/demo"
	"github.com/tenure-dev/tenure/examples/internal/replicas/replicastest"
)

// However the program ends, no replica outlives it, frozen ones neither: the kernel sees to that,
// where it can.
func TestNoReplicaOutlivesThePage(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	s.AwaitTicks(t, 1)
	s.Do(t, demo.Order{Do: "freeze", Replica: "b"})
	running := pids(s.State())
	require.NoError(t, s.Process.Kill())
	for name, pid := range running {
		require.NotZero(t, pid)
		require.Eventually(t, func() bool { return gone(pid) }, replicastest.Soon, 10*time.Millisecond, "replica %s", name)
	}
}

// gone tells whether a process has ended. One that was orphaned may remain as a zombie where nobody
// reaps it.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
