//go:build unix

package replicas_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
)

const patience = 4 * time.Minute

func TestMain(m *testing.M) {
	switch {
	case replicas.IsReplica():
		replicas.Main(serve)
	case os.Getenv("TENURE_TEST_PARENT") != "":
		replicas.Exit(parent())
	default:
		goleak.VerifyTestMain(m)
	}
}

// serve is a service that tells its process id. Asked to hang, it does not stop.
func serve(ctx context.Context, hangs bool, report func(any)) error {
	report(os.Getpid())
	<-ctx.Done()
	if hangs {
		select {}
	}
	return nil
}

// parent starts three replicas, of which the last hangs if there is an argument.
func parent() error {
	ctx, stop := replicas.Context()
	defer stop()
	group := replicas.NewGroup(func(_ *replicas.Process, pid int) { fmt.Println("serves", pid) })
	for i, name := range []string{"a", "b", "c"} {
		group.Start(name, i == 2 && len(os.Args) > 1)
	}
	group.Watch(ctx, func() bool { return false })
	return group.Stop()
}

// program is a parent that runs.
type program struct {
	*exec.Cmd
	lines  *bufio.Scanner
	stderr bytes.Buffer
	pids   []int
}

// launch starts a parent, and waits for its replicas.
func launch(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(os.Args[0], args...)}
	p.Env = append(os.Environ(), "TENURE_TEST_PARENT=1")
	p.Stderr, p.WaitDelay = &p.stderr, 20*time.Second
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	p.lines = bufio.NewScanner(stdout)
	for len(p.pids) < 3 && p.lines.Scan() {
		if pid := 0; strings.HasPrefix(p.lines.Text(), "serves") {
			_, err := fmt.Sscanf(p.lines.Text(), "serves %d", &pid)
			require.NoError(t, err)
			p.pids = append(p.pids, pid)
		}
	}
	require.Len(t, p.pids, 3)
	return p
}

// end returns the exit code, and waits until the replicas are gone.
func (p *program) end(t *testing.T) int {
	t.Helper()
	for p.lines.Scan() {
	}
	_ = p.Wait()
	for _, pid := range p.pids {
		require.Eventually(t, func() bool { return gone(pid) }, patience, 10*time.Millisecond, "replica with pid %d", pid)
	}
	return p.ProcessState.ExitCode()
}

// gone tells whether a process has ended. One that was orphaned may remain as a zombie where nobody
// reaps it.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return err == nil && bytes.HasPrefix(after, []byte("Z"))
}

func TestSignalEndsEverything(t *testing.T) {
	t.Parallel()
	p := launch(t)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.end(t), p.stderr.String())
}

// The replicas' input ends with their parent, however it ended. A replica that hangs exits, too.
func TestNoReplicaSurvivesItsParent(t *testing.T) {
	t.Parallel()
	p := launch(t, "hang")
	require.NoError(t, p.Process.Kill())
	p.end(t)
}

// One replica that fails ends everything.
func TestReplicaThatFails(t *testing.T) {
	t.Parallel()
	p := launch(t)
	require.NoError(t, syscall.Kill(p.pids[1], syscall.SIGKILL))
	require.Equal(t, 1, p.end(t))
	require.Contains(t, p.stderr.String(), fmt.Sprintf("(pid %d) failed: signal: killed", p.pids[1]))
}
