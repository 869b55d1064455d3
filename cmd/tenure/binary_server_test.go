package main

import (
	"bufio"
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
	"time"

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

// serveWeb serves the page until the test ends, and returns its address.
func serveWeb(t *testing.T, binary string, environ []string, args ...string) (cmd *exec.Cmd, url string) {
	t.Helper()
	cmd = exec.Command(binary, append([]string{"web", "--listen", "127.0.0.1:0", "--log", "error"}, args...)...)
	cmd.Env = environ
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	first, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(first)
}

// The page is served on loopback, to those who ask for it by its name, without orders unless that
// was said, until a signal comes.
func TestWeb(t *testing.T) {
	t.Parallel()
	binary := build(t)
	f := startServers(t, 3)
	replica(t, f)
	for _, actions := range []bool{false, true} {
		var args []string
		if actions {
			args = []string{"--actions", "--as", "ann"}
		}
		cmd, url := serveWeb(t, binary, nodesAt(f.URLs()...), args...)
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
		late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		require.NoError(t, cmd.Wait(), "it ends as it should")
		late.Stop()
	}
}

// It named an address of every interface, or of the name to listen on, and answered 421 there.
func TestWebNamesWhereItAnswers(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"localhost:0", ":0"} {
		_, url := serveWeb(t, build(t), nodesAt("valkey://127.0.0.1:1"), "--listen", listen, "--host", "[localhost]")
		response, err := http.Get(url + "api/v1/")
		require.NoError(t, err)
		_ = response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode, url)
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
