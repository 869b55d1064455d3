package demonstration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/internal/child"
)

// serve compiles the demonstration, as somebody does who has the repository and Go, and runs it
// until the end of the test. It returns the URL of the page.
func serve(t *testing.T) string {
	t.Helper()
	root, file := browser.Root(t), filepath.Join(t.TempDir(), "demo")
	build := exec.Command("go", "build", "-o", file, "./examples/demo")
	build.Dir, build.Env = root, append(os.Environ(), "GOWORK=") // the repository's, whatever is set for these tests
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)

	lines := make(chan string, 100)
	cmd := exec.Command(file, "-listen", "127.0.0.1:0", "-out", t.TempDir())
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, child.Lines(func(line string) { lines <- line }), os.Stderr
	c, err := child.Start(cmd)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Kill()) })
	for { // it is compiled to WebAssembly first
		select {
		case line := <-lines:
			if _, url, found := strings.Cut(line, "the page is at "); found {
				return url
			}
		case <-c.Exited():
			require.FailNow(t, "the program has ended", "%v", c.Err())
		}
	}
}
