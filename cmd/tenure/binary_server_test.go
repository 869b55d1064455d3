package main

import (
	"bufio"
	"context"
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

// install installs the binary from the checkout, as docs/steering.md says, once for all tests.
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
