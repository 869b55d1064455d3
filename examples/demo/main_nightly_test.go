//go:build nightly

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files are made within their bound, and served. The page itself is tested in a browser, in e2e.
func TestFilesAreMadeAndServed(t *testing.T) {
	dir := t.TempDir()
	size, err := build(t.Context(), dir)
	require.NoError(t, err)
	t.Logf("%d bytes, compressed", size)
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(ctx, in, dir, ":0") }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimSpace(strings.TrimPrefix(line, "the page is at "))
	require.Contains(t, url, "http://127.0.0.1:", "on loopback")
	for _, path := range []string{"", "demo.css", "demo.js", "icon.svg", "host.js", "worker.js", "wasm_exec.js", packed} {
		r, err := http.Get(url + path)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusOK, r.StatusCode, path)
	}
	cancel()
	require.NoError(t, <-done)
}

// TestClocksOfABrowser runs the test of the library's clock that is for JavaScript's clocks.
func TestClocksOfABrowser(t *testing.T) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	runner := filepath.Join(strings.TrimSpace(string(goroot)), "lib", "wasm", "go_js_wasm_exec")
	cmd := exec.Command("go", "test", "-count=1", "-run", "Coarse", "-v", "-exec", runner, "github.com/tenure-dev/tenure/internal/clock")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestCoarseClocksAreNoSuspend")
}
