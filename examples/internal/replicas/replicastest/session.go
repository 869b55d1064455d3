// Package replicastest runs a program of replicas in tests, as a process of its own: the test's
// binary itself, which therefore calls the program's main function where Called says so.
package replicastest

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
)

// Soon is far more than anything takes.
const Soon = 4 * time.Minute

const variable = "TENURE_TEST_PROGRAM"

// Called reports whether this process is one that Launch has started, or a replica of it. TestMain
// then calls main, which exits, and runs no tests.
func Called() bool { return os.Getenv(variable) != "" }

// Session is a run of the program.
type Session struct {
	Process *os.Process
	cmd     *exec.Cmd
	stderr  bytes.Buffer  // read it after the end
	eof     chan struct{} // closed at the end of the output

	mu  sync.Mutex
	out strings.Builder // guarded by mu
}

// Launch starts the program with nodes of its own and exporting nowhere, unless env and args say
// otherwise.
func Launch(t *testing.T, env []string, args ...string) *Session {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	s := &Session{cmd: exec.Command(self, args...), eof: make(chan struct{})}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OTEL_") && !strings.HasPrefix(v, replicas.NodesVariable+"=") {
			s.cmd.Env = append(s.cmd.Env, v)
		}
	}
	s.cmd.Env = append(append(s.cmd.Env, variable+"=1"), env...)
	s.cmd.Stderr = &s.stderr
	s.cmd.WaitDelay = 5 * time.Second // replicas that outlive it have its standard error
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	s.Process = s.cmd.Process
	go s.read(stdout)
	t.Cleanup(func() {
		_ = s.Process.Kill()
		<-s.eof
		_ = s.cmd.Wait()
	})
	return s
}

func (s *Session) read(stdout io.Reader) {
	defer close(s.eof)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		s.mu.Lock()
		s.out.WriteString(lines.Text() + "\n")
		s.mu.Unlock()
	}
}

// Output is what the program has printed until now.
func (s *Session) Output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// Stderr is what the program and its replicas have printed as errors. Call it after End.
func (s *Session) Stderr() string { return s.stderr.String() }

// Await waits for a text in the output.
func (s *Session) Await(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.Output(), text) }, Soon, 10*time.Millisecond)
}

// PIDs are the process ids of the replicas that were started until now.
func (s *Session) PIDs(t *testing.T) (pids []int) {
	t.Helper()
	for _, found := range regexp.MustCompile(`\(pid ([0-9]+)\) started\n`).FindAllStringSubmatch(s.Output(), -1) {
		pid, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

// End waits for the program's end and returns its exit code.
func (s *Session) End(t *testing.T) int {
	t.Helper()
	select {
	case <-s.eof:
	case <-time.After(Soon):
		t.Fatalf("the program does not end:\n%s", s.Output())
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}
