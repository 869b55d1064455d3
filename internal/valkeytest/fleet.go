package valkeytest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// binaryVariable names the environment variable that overrides the PATH.
const binaryVariable = "TENURE_VALKEY_SERVER"

// Fleet is a number of independent servers. It is safe for concurrent use.
type Fleet struct {
	nodes []*Node
	dir   string
	close func() error
}

// Start starts n servers on free loopback ports, waits until all answer, and
// ends them with the test. It ends the test if it cannot.
func Start(tb testing.TB, n int, opts ...Option) *Fleet {
	tb.Helper()
	fleet, err := New(n, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			tb.Error(err)
		}
	})
	return fleet
}

// New is [Start] without a test, for a TestMain or a benchmark's own main. The
// caller closes the fleet.
func New(n int, opts ...Option) (*Fleet, error) {
	if n < 1 {
		return nil, fmt.Errorf("valkeytest: a fleet of %d servers: ask for at least one", n)
	}
	cfg := &config{}
	for _, opt := range opts {
		opt(cfg)
	}
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	cfg.binary = binary
	dir, err := os.MkdirTemp("", "valkeytest-")
	if err != nil {
		return nil, fmt.Errorf("valkeytest: no directory for the servers: %w", err)
	}
	if cfg.clock {
		if cfg.clockLibrary, err = writeClockLibrary(dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	f := &Fleet{dir: dir}
	f.close = sync.OnceValue(f.end)
	for i := range n {
		f.nodes = append(f.nodes, &Node{
			cfg: cfg,
			dir: filepath.Join(dir, fmt.Sprintf("node-%d", i+1)),
		})
	}
	if err := f.all((*Node).startAnywhere); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func findBinary() (string, error) {
	path, err := exec.LookPath(cmp.Or(os.Getenv(binaryVariable), "valkey-server"))
	if err != nil {
		return "", fmt.Errorf("valkeytest: no valkey-server: install it with `scripts/install.sh valkey`, or name one in %s: %w", binaryVariable, err)
	}
	return path, nil
}

// Nodes returns the servers, always in the same order.
func (f *Fleet) Nodes() []*Node { return slices.Clone(f.nodes) }

// Node returns server i, counted from zero. It panics if there is none.
func (f *Fleet) Node(i int) *Node { return f.nodes[i] }

// URLs returns the servers' URLs, in the order of [Fleet.Nodes].
func (f *Fleet) URLs() []string {
	urls := make([]string, len(f.nodes))
	for i, n := range f.nodes {
		urls[i] = n.URL()
	}
	return urls
}

// Close kills all servers, stopped ones too, waits for their end and removes their files. Further
// calls return the result of the first one.
func (f *Fleet) Close() error { return f.close() }

func (f *Fleet) end() error {
	err := f.all((*Node).close)
	if rmErr := os.RemoveAll(f.dir); rmErr != nil {
		err = errors.Join(err, fmt.Errorf("valkeytest: cannot remove the servers' files: %w", rmErr))
	}
	return err
}

// all calls do for all nodes concurrently.
func (f *Fleet) all(do func(*Node) error) error {
	errs := make([]error, len(f.nodes))
	var wg sync.WaitGroup
	for i, n := range f.nodes {
		wg.Go(func() { errs[i] = do(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
