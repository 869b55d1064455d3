package demonstration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/internal/child"
)

// program is one of the examples that serves the page.
type program struct {
	*child.Child
	url string
}

// announced is the line that names the page.
const announced = "the page is at "

// build compiles an example, as somebody does who has the repository and Go.
func build(t *testing.T, example string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), filepath.Base(example))
	cmd := exec.Command("go", "build", "-o", file, "./examples/"+example)
	cmd.Dir = browser.Root(t)
	cmd.Env = append(os.Environ(), "GOWORK=") // the repository's, whatever is set for these tests
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return file
}

// run starts an example and waits until its page is there. It is stopped with the test, and must
// end well then.
func run(t *testing.T, file string, arguments ...string) *program {
	t.Helper()
	cmd := exec.Command(file, arguments...)
	cmd.Dir = browser.Root(t)
	lines := make(chan string, 1000)
	cmd.Stdout = child.Lines(func(line string) {
		select {
		case lines <- line:
		default:
		}
	})
	cmd.Stderr = os.Stderr
	c, err := child.Start(cmd)
	require.NoError(t, err)
	p := &program{Child: c}
	t.Cleanup(func() {
		if p.Running() {
			require.NoError(t, p.Terminate(browser.Patience))
		}
	})
	limit := time.After(5 * browser.Patience) // it may have to be compiled to WebAssembly first
	for p.url == "" {
		select {
		case line := <-lines:
			t.Log(line)
			if _, url, found := strings.Cut(line, announced); found {
				p.url = url
			}
		case <-c.Exited():
			require.FailNow(t, "the program has ended", "%v", c.Err())
		case <-limit:
			require.FailNow(t, "the program does not say where its page is")
		}
	}
	return p
}
