package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// program is this package, built for the tests.
var program string

func TestMain(m *testing.M) { goleak.VerifyTestMain(buildFirst{m}) }

// buildFirst builds the program before the tests run and removes it afterwards.
type buildFirst struct{ tests *testing.M }

func (b buildFirst) Run() int {
	dir, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "quickstart.exe") // a suffix that is needed on Windows and harmless elsewhere
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

// launch starts the program with nodes of its own, unless env says otherwise.
func launch(t *testing.T, env []string, args ...string) *session {
	t.Helper()
	s := &session{cmd: exec.Command(program, args...), eof: make(chan struct{})}
	s.cmd.Env = append(append(os.Environ(), nodesVariable+"="), env...)
	s.cmd.Stderr = &s.stderr
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

func TestStory(t *testing.T) {
	short := []string{"-duration", "6s", "-ttl", "1s"}
	servers := func(t *testing.T) []string {
		return []string{nodesVariable + "=" + strings.Join(valkeytest.Start(t, 3).URLs(), ",")}
	}
	for name, tc := range map[string]struct {
		mode  mode
		nodes func(*testing.T) []string
		lines []string
	}{
		"elector": {mode: modeElector, lines: []string{"elected leader +token [0-9]+", "leads no more: resigned +token [0-9]+", "measured hand-over: "}},
		"locker":  {mode: modeLocker},
		"elector on real servers": {mode: modeElector, nodes: servers,
			lines: []string{"uses real servers: 127.0.0.1", `name "quickstart-[0-9]{8}T`, "measured hand-over: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env []string
			if tc.nodes != nil {
				env = tc.nodes(t)
			}
			s := launch(t, env, append(short, "-mode", string(tc.mode))...)
			code, out := s.end(t), s.output()
			require.Equal(t, exitOK, code, "%s\n%s", out, s.stderr.String())
			for _, line := range append(tc.lines,
				`replica [abc] \(pid [0-9]+\) +runs tick [0-9:]{8} +token [0-9]+\n`,
				`supervisor +KILLS replica [abc] \(pid [0-9]+\), .* \(SIGKILL\)\n`,
				`supervisor +measured take-over: [0-9.]+m?s from the kill\n`,
				`\nsummary: [0-9]+ ticks, `,
				`\n  ran once  +[1-9]`,
				`\n  ran twice +0 `,
				`\nno tick ran twice\n$`,
			) {
				require.Regexp(t, line, out)
			}
			require.Len(t, regexp.MustCompile(`\(pid [0-9]+\) +started\n`).FindAllString(out, -1), 4, "three replicas, and one again:\n%s", out)
			require.Len(t, regexp.MustCompile(`\(pid [0-9]+\) +exited\n`).FindAllString(out, -1), 3, "all in order:\n%s", out)
		})
	}
}

func TestNoServers(t *testing.T) {
	s := launch(t, nil, "-nodes", "valkey://user:secret@127.0.0.1:1,valkey://127.0.0.1:2,valkey://127.0.0.1:3")
	require.Equal(t, exitFailed, s.end(t))
	require.Empty(t, s.output())
	require.Contains(t, s.stderr.String(), "0 of 3 servers can be used, too few for a quorum: start them or correct -nodes")
	require.Contains(t, s.stderr.String(), "127.0.0.1:1")
	require.NotContains(t, s.stderr.String(), "secret")
}

func TestUsage(t *testing.T) {
	for code, args := range map[int][]string{exitOK: {"-help"}, exitUsage: {"-duration", "1s"}} {
		s := launch(t, []string{nodesVariable + "=valkey://user:secret@127.0.0.1:1"}, args...)
		require.Equal(t, code, s.end(t))
		require.NotContains(t, s.stderr.String()+s.output(), "secret")
	}
}

func TestReplicaNeedsASupervisor(t *testing.T) {
	s := launch(t, []string{replicaVariable + "=a"})
	require.Equal(t, exitUsage, s.end(t))
	require.Contains(t, s.stderr.String(), "unset "+replicaVariable)
}
