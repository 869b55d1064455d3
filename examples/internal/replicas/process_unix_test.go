//go:build unix

package replicas_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/examples/internal/replicas/replicastest"
)

func TestMain(m *testing.M) {
	switch {
	case !replicastest.Called():
		goleak.VerifyTestMain(m)
	case replicas.IsReplica():
		os.Exit(replicas.Main(serve))
	default:
		os.Exit(parent())
	}
}

// serve is a service that says hello. Asked to hang, it does not stop.
func serve(ctx context.Context, hangs bool, events *replicas.Reporter) error {
	events.Report("hello")
	<-ctx.Done()
	if hangs {
		select {}
	}
	return nil
}

// parent starts three replicas, of which the last hangs if there is an argument.
func parent() int {
	ctx, stop := replicas.Context()
	defer stop()
	heard := 0
	group := replicas.NewGroup(func(p *replicas.Process, text string) {
		if heard++; heard == 3 {
			replicas.Say("all said %s", text)
		}
	})
	for i := range 3 {
		group.Start(replicas.Name(i), i == 2 && len(os.Args) > 1)
	}
	group.Watch(ctx, func() bool { return false })
	if err := group.Stop(); err != nil {
		replicas.Complain(err)
		return 1
	}
	return 0
}

// launch starts the program and waits for its replicas. It returns their process ids.
func launch(t *testing.T, args ...string) (*replicastest.Session, []int) {
	t.Helper()
	s := replicastest.Launch(t, nil, args...)
	s.Await(t, "all said hello")
	pids := s.PIDs(t)
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

// gone tells whether a process has ended. One that was orphaned may remain as a zombie where nobody
// reaps it.
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
			s, pids := launch(t)
			require.NoError(t, s.Process.Signal(signal))
			require.Equal(t, 0, s.End(t), "%s\n%s", s.Output(), s.Stderr())
			require.Equal(t, 3, strings.Count(s.Output(), ") exited\n"), s.Output())
			for _, pid := range pids {
				require.True(t, gone(pid), "replica with pid %d", pid)
			}
		})
	}
}

// The replicas' input ends with their parent, however it ended. A replica that hangs exits, too.
func TestNoReplicaSurvivesItsParent(t *testing.T) {
	t.Parallel()
	s, pids := launch(t, "hang")
	require.NoError(t, s.Process.Kill())
	for _, pid := range pids {
		require.Eventually(t, func() bool { return gone(pid) }, replicastest.Soon, 10*time.Millisecond, "replica with pid %d", pid)
	}
}

// One replica that fails ends everything.
func TestReplicaThatFails(t *testing.T) {
	t.Parallel()
	s, pids := launch(t)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGKILL))
	require.Equal(t, 1, s.End(t), s.Output())
	require.Contains(t, s.Stderr(), fmt.Sprintf("replica b (pid %d) failed: signal: killed", pids[1]))
	for _, pid := range pids {
		require.True(t, gone(pid), "replica with pid %d", pid)
	}
}

func TestReplicaThatHangs(t *testing.T) {
	t.Parallel()
	s, pids := launch(t, "hang")
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 1, s.End(t), s.Output())
	require.Contains(t, s.Stderr(), fmt.Sprintf("replica c (pid %d) failed: exit status 1", pids[2]))
	require.True(t, gone(pids[2]))
}

func TestReplicaNeedsAParent(t *testing.T) {
	s := replicastest.Launch(t, []string{"TENURE_REPLICA=a"})
	require.Equal(t, 2, s.End(t))
	require.Contains(t, s.Stderr(), "unset TENURE_REPLICA")
}

func TestHostsWithoutPasswords(t *testing.T) {
	nodes, err := replicas.OpenNodes([]string{"valkey://user:secret@h:1/0", "valkey://user:se cret@%zz", "valkeys://:secret@h", "secret"})
	require.NoError(t, err)
	require.Equal(t, "h:1, node 2, h, node 4", nodes.String())
}
