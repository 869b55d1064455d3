//go:build nightly

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/examples/internal/demo"
	"github.com/tenure-dev/tenure/examples/internal/demo/demotest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// theirs are the lines of an order and its answer, as the page and the worker send them.
type theirs struct {
	ID      int             `json:"id,omitempty"`
	Order   *demo.Order     `json:"order,omitempty"`
	Message json.RawMessage `json:"message,omitempty"`
	Error   string          `json:"error,omitempty"`
	Failed  string          `json:"failed,omitempty"`
}

// play runs the demonstration of a directory in Node.js.
func play(t *testing.T, dir string) *demotest.Watcher {
	t.Helper()
	node, err := exec.LookPath("node")
	require.NoError(t, err, "install Node.js: make node")
	w := demotest.New()
	cmd := exec.Command(node, filepath.Join("testdata", "drive.js"), dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	var mu sync.Mutex
	waiting := make(map[int]chan string) // guarded by mu
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var line theirs
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Failed != "" {
				t.Errorf("%v %s", err, lines.Text())
				return
			}
			if line.Message != nil {
				if err := w.Take(line.Message); err != nil {
					t.Errorf("%v: %s", err, line.Message)
				}
				continue
			}
			mu.Lock()
			waiting[line.ID] <- line.Error
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		<-ended
		require.NoError(t, cmd.Wait(), "it ends with its input")
	})
	last := 0
	w.Order = func(o demo.Order) error {
		mu.Lock()
		last++
		answer := make(chan string, 1)
		waiting[last] = answer
		line, err := json.Marshal(theirs{ID: last, Order: &o})
		mu.Unlock()
		if err != nil {
			return err
		}
		if _, err := stdin.Write(append(line, '\n')); err != nil {
			return err
		}
		select {
		case text := <-answer:
			if text != "" {
				return errors.New(text)
			}
			return nil
		case <-ended:
			return errors.New("the program has ended")
		}
	}
	return w
}

// TestBrowser makes the files, within their bound, and plays with them in Node.js.
func TestBrowser(t *testing.T) {
	dir := t.TempDir()
	size, err := build(t.Context(), dir)
	require.NoError(t, err)
	t.Logf("%d bytes, compressed", size)
	require.Less(t, size, maxSize)
	index, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	require.Contains(t, string(index), `data-program="worker"`)
	require.Contains(t, string(index), policy)
	for _, name := range []string{"demo.css", "demo.js", "icon.svg", "host.js", "worker.js", "wasm_exec.js", packed} {
		require.FileExists(t, filepath.Join(dir, name))
	}

	t.Run("served", func(t *testing.T) { served(t, dir) })
	t.Run("a leader is killed", func(t *testing.T) {
		w := play(t, dir)
		first := w.AwaitLeader(t, "")
		require.Equal(t, demo.Browser, w.State().Where)
		w.AwaitTicks(t, 2)
		w.Do(t, demo.Order{Do: "kill", Replica: first})
		w.AwaitLeader(t, first)
		over := w.Await(t, "a take-over", func(s demo.State, _ map[int]demo.Item) bool { return s.Takeover != nil }).Takeover
		t.Logf("%s took over %d ms after %s was killed, promised %d ms", over.To, over.After, first, over.Bound)
		require.LessOrEqual(t, over.After, 6*over.Bound)
		w.Do(t, demo.Order{Do: "mend"})

		lines := w.Lines()
		w.AwaitTicks(t, 1)
		w.Do(t, demo.Order{Do: "late"})
		w.AwaitLine(t, lines, "the store REFUSES a late write")
		w.Await(t, "the end of the story", func(s demo.State, _ map[int]demo.Item) bool { return s.Story == nil })
		require.Zero(t, w.State().Counters.Twice+w.State().Counters.Overlaps+w.State().Counters.Accepted, w.Log())

		w.Do(t, demo.Order{Do: "partition", Node: 1})
		w.Do(t, demo.Order{Do: "kill", Node: 2})
		w.Do(t, demo.Order{Do: "freeze", Node: 3})
		w.Await(t, "no leader without a quorum", func(s demo.State, _ map[int]demo.Item) bool { return s.Leader == "" })
		w.Do(t, demo.Order{Do: "mend"})
		w.AwaitLeader(t, "")
		require.ErrorContains(t, w.Order(demo.Order{Do: "explode"}), "there is no order")
		require.Zero(t, w.State().Counters.Twice+w.State().Counters.Overlaps, w.Log())
	})
	t.Run("time stands still", func(t *testing.T) {
		w := play(t, dir)
		w.AwaitTicks(t, 1)
		w.Do(t, demo.Order{Do: "speed"})
		w.Await(t, "the state of time", func(s demo.State, _ map[int]demo.Item) bool { return s.Speed == 0 })
		before := w.State().Now
		w.Do(t, demo.Order{Do: "partition", Node: 1}) // orders are carried out all the same
		w.Await(t, "a partition", func(s demo.State, _ map[int]demo.Item) bool { return len(s.Nodes[0].Cut) > 0 })
		require.InDelta(t, before, w.State().Now, 1)
		w.Do(t, demo.Order{Do: "speed", Factor: 2})
		w.AwaitTicks(t, 1)
	})
	t.Run("safeguards are off", func(t *testing.T) {
		w := play(t, dir)
		w.AwaitTicks(t, 1)
		w.Do(t, demo.Order{Do: "switch", Name: "gate"})
		w.Do(t, demo.Order{Do: "switch", Name: "fence"})
		ended := func(s demo.State, _ map[int]demo.Item) bool { return s.Story == nil }
		w.Await(t, "the end of the restart", ended)
		// The lease may have run out before another replica asks, on a machine that is busy.
		for try := 0; w.State().Counters.Overlaps == 0; try++ {
			require.Less(t, try, 10, w.Log())
			lines := w.Lines()
			w.AwaitTicks(t, 1)
			w.Do(t, demo.Order{Do: "amnesia"})
			w.AwaitLine(t, lines, "waits until the job runs again")
			w.Await(t, "the end of the story", ended)
		}
		w.AwaitLine(t, 0, "both hold the lease")
		w.Do(t, demo.Order{Do: "late"})
		w.Await(t, "a late write that is taken", func(s demo.State, _ map[int]demo.Item) bool { return s.Counters.Accepted > 0 })
	})
}

// served asks the program's own server for the files.
func served(t *testing.T, dir string) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(ctx, in, dir, ":0") }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimSpace(strings.TrimPrefix(line, "the page is at "))
	require.Contains(t, url, "http://127.0.0.1:", "on loopback")
	for path, kind := range map[string]string{"": "text/html", "worker.js": "text/javascript", packed: ""} {
		r, err := http.Get(url + path)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, r.Body)
		require.NoError(t, errors.Join(err, r.Body.Close()))
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Contains(t, r.Header.Get("Content-Type"), kind)
		require.Contains(t, r.Header.Get("Content-Security-Policy"), "'wasm-unsafe-eval'")
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	require.NoError(t, <-done)
}

func TestUsage(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), io.Discard, []string{"now"}), `unexpected argument "now"`)
	require.ErrorContains(t, serve(t.Context(), io.Discard, t.TempDir(), "8081"), "missing port")
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
