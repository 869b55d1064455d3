//go:build nightly

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files are made within their bound. The page itself is tested in a browser, in e2e.
func TestFilesAreMade(t *testing.T) {
	dir := t.TempDir()
	size, err := build(t.Context(), dir)
	require.NoError(t, err)
	t.Logf("%d bytes, compressed", size)
	for _, file := range []string{"index.html", "demo.css", "demo.js", "icon.svg", "host.js", "worker.js", "wasm_exec.js", packed} {
		require.FileExists(t, filepath.Join(dir, file))
	}
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
