package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// install installs the binary from the checkout, as docs/cli.md says, once for all tests.
var install = sync.OnceValues(func() (binary string, err error) {
	dir, err := os.MkdirTemp("", "tenure-binary-")
	if err != nil {
		return "", err
	}
	installed = dir
	cmd := exec.Command("go", "install", "./cmd/tenure")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOBIN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "tenure"), nil
})

// installed is where that is; empty before. TestMain removes it.
var installed string

func build(t *testing.T) (binary string) {
	t.Helper()
	binary, err := install()
	require.NoError(t, err)
	return binary
}

// The binary does in a process what the function does in a test: codes, streams, signals.
func TestBinary(t *testing.T) {
	t.Parallel()
	binary := build(t)
	f := startServers(t, 3)
	replica(t, f)
	environ := append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s", "PATH="+os.Getenv("PATH"))
	run := func(args ...string) (code int, out, errors string) {
		cmd := exec.Command(binary, args...)
		cmd.Env = environ
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the code tells
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	require.Eventually(t, func() bool {
		code, out, errors := run("status", "-o", "json")
		require.Equal(t, exitOK, code, "%s%s", out, errors)
		var d statusDocument
		require.NoError(t, json.Unmarshal([]byte(out), &d))
		return *d.Jobs == 4
	}, patience, 10*poll)
	code, out, errors := run("doctor")
	require.Equal(t, exitWarnings, code, "%s%s", out, errors)
	require.Contains(t, out, "not_persistent")
	code, _, errors = run("pause", "report")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errors, "say why")
	code, out, errors = run("pause", "report", "--why", "test", "--as", "ann")
	require.Equal(t, exitOK, code, errors)
	require.Contains(t, out, "paused by ann")

	// What waits ends with a signal, and says with which.
	require.Eventually(t, func() bool {
		code, _, errors = run("run-now", "slow", "--why", "test")
		return code == exitOK || code == exitRefused // it runs already: the answer was not heard in time
	}, patience, 10*poll, errors)
	var cmd *exec.Cmd
	var ended chan struct{}
	begin := func() {
		cmd, ended = exec.Command(binary, "pause", "slow", "--why", "test", "--wait", "--timeout", "10m"), make(chan struct{})
		cmd.Env = environ
		require.NoError(t, cmd.Start())
		go func(cmd *exec.Cmd, ended chan struct{}) {
			_ = cmd.Wait() // the code tells
			close(ended)
		}(cmd, ended)
	}
	begin()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, if all is well
		<-ended
	})
	require.Eventually(t, func() bool {
		select {
		case <-ended: // without a quorum, on a machine that is busy
			begin()
		default:
		}
		_, out, _ := run("jobs", "slow", "-o", "json")
		return strings.Contains(out, `"reason": "test"`)
	}, 2*patience, 10*poll)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	<-ended
	require.Contains(t, []int{exitSignal + int(syscall.SIGTERM), -1}, cmd.ProcessState.ExitCode(), "a signal that comes before it listens ends it, too")

	require.NoError(t, f.Node(0).Kill())
	code, out, _ = run("doctor")
	require.Equal(t, exitFaults, code)
	require.Contains(t, out, "FAULT down")
}

// The page is served on loopback, to those who ask for it by its name, without orders unless that
// was said, until a signal comes.
func TestWeb(t *testing.T) {
	t.Parallel()
	binary := build(t)
	f := startServers(t, 3)
	replica(t, f)
	for _, actions := range []bool{false, true} {
		args := []string{"web", "--listen", "127.0.0.1:0", "--log", "error"}
		if actions {
			args = append(args, "--actions", "--as", "ann")
		}
		cmd := exec.Command(binary, args...)
		cmd.Env = nodesAt(f.URLs()...)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, if all is well
		first, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		url := strings.TrimSpace(first)
		require.Regexp(t, `^http://127\.0\.0\.1:\d+/$`, url)

		get := func(path, host string) (status int, body string) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
			require.NoError(t, err)
			request.Host = host
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			response, err := client.Do(request)
			require.NoError(t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			return response.StatusCode, string(text)
		}
		require.Eventually(t, func() bool {
			status, body := get("jobs", "")
			return status == http.StatusOK && strings.Contains(body, "report")
		}, patience, 10*poll)
		status, _ := get("", "localhost")
		require.Equal(t, http.StatusOK, status)
		status, _ = get("", "attacker.example")
		require.Equal(t, http.StatusMisdirectedRequest, status)
		status, _ = get("order?kind=pause&job=report", "")
		require.Equal(t, map[bool]int{false: http.StatusNotFound, true: http.StatusOK}[actions], status)

		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			require.NoError(t, err, "it ends as it should")
		case <-ctx.Done():
			require.FailNow(t, "it does not end")
		}
		cancel()
	}
}

// A listener that cannot be had is said.
func TestWebWhereSomethingListens(t *testing.T) {
	t.Parallel()
	f := startServers(t, 1)
	got := call(t, nodesAt(f.URLs()...), "web", "--listen", f.Node(0).Addr())
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "address already in use")
}
