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

// serve is a service that tells its process id.
func serve(ctx context.Context, _ bool, report func(any)) error {
	report(os.Getpid())
	<-ctx.Done()
	return nil
}

// parent starts three replicas.
func parent() error {
	ctx, stop := replicas.Context()
	defer stop()
	group := replicas.NewGroup(func(_ *replicas.Process, pid int) { fmt.Println("serves", pid) })
	for _, name := range []string{"a", "b", "c"} {
		group.Start(name, true)
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
func launch(t *testing.T) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(os.Args[0])}
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
		require.Error(t, syscall.Kill(pid, 0), "replica with pid %d", pid)
	}
	return p.ProcessState.ExitCode()
}

func TestSignalEndsEverything(t *testing.T) {
	t.Parallel()
	p := launch(t)
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.end(t), p.stderr.String())
}

// One replica that fails ends everything.
func TestReplicaThatFails(t *testing.T) {
	t.Parallel()
	p := launch(t)
	require.NoError(t, syscall.Kill(p.pids[1], syscall.SIGKILL))
	require.Equal(t, 1, p.end(t))
	require.Contains(t, p.stderr.String(), fmt.Sprintf("(pid %d) failed: signal: killed", p.pids[1]))
}
