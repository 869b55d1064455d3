package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// program is this package, built for the tests.
var program string

func TestMain(m *testing.M) { goleak.VerifyTestMain(buildFirst{m}) }

// buildFirst builds the program before the tests run and removes it afterwards.
type buildFirst struct{ tests *testing.M }

func (b buildFirst) Run() int {
	dir, err := os.MkdirTemp("", "observability-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "observability.exe") // a suffix that is needed on Windows and harmless elsewhere
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return b.tests.Run()
}

// session is a run of the program.
type session struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer // read it after the end

	mu  sync.Mutex
	out strings.Builder // guarded by mu
	eof chan struct{}   // closed at the end of the output
}

// launch starts the program with nodes of its own and exporting nowhere, unless env and args say otherwise.
func launch(t *testing.T, env []string, args ...string) *session {
	t.Helper()
	s := &session{cmd: exec.Command(program, append([]string{"-metrics-port", "0"}, args...)...), eof: make(chan struct{})}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OTEL_") && !strings.HasPrefix(v, nodesVariable+"=") {
			s.cmd.Env = append(s.cmd.Env, v)
		}
	}
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stderr = &s.stderr
	s.cmd.WaitDelay = 5 * time.Second // replicas that outlive it have its standard error
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	go s.read(stdout)
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.eof
		_ = s.cmd.Wait()
	})
	return s
}

func (s *session) read(stdout io.Reader) {
	defer close(s.eof)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		s.mu.Lock()
		s.out.WriteString(lines.Text() + "\n")
		s.mu.Unlock()
	}
}

func (s *session) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// end waits for the program's end and returns its exit code.
func (s *session) end(t *testing.T) int {
	t.Helper()
	select {
	case <-s.eof:
	case <-time.After(time.Minute):
		t.Fatalf("the program does not end:\n%s", s.output())
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

func TestUsage(t *testing.T) {
	for code, args := range map[int][]string{exitOK: {"-help"}, exitUsage: {"-replicas", "0"}} {
		s := launch(t, []string{nodesVariable + "=valkey://user:secret@127.0.0.1:1"}, args...)
		require.Equal(t, code, s.end(t))
		require.NotContains(t, s.stderr.String()+s.output(), "secret")
	}
}

func TestChildNeedsASupervisor(t *testing.T) {
	s := launch(t, []string{replicaVariable + "=a"})
	require.Equal(t, exitUsage, s.end(t))
	require.Contains(t, s.stderr.String(), "unset "+replicaVariable)
}

func TestAddressOfAnotherMachine(t *testing.T) {
	s := launch(t, nil, "-listen", "192.0.2.1", "-replicas", "1") // an address of nobody's (RFC 5737)
	require.Equal(t, exitFailed, s.end(t))
	require.Contains(t, s.stderr.String(), "cannot serve metrics")
}
