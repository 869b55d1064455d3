package valkeytest

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

//go:embed testdata/clock_shim.c
var clockShimSource []byte

// clockLibrary is the compiled shim. Each fleet that needs it writes a copy into its own directory,
// which is removed with the fleet.
var clockLibrary = sync.OnceValues(compileClockShim)

func compileClockShim() ([]byte, error) {
	compiler, err := findCompiler()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "valkeytest-clock-")
	if err != nil {
		return nil, fmt.Errorf("valkeytest: no directory for the clock shim: %w", err)
	}
	defer os.RemoveAll(dir)
	source, library := filepath.Join(dir, "clock_shim.c"), filepath.Join(dir, "clock_shim.so")
	if err := os.WriteFile(source, clockShimSource, 0o600); err != nil {
		return nil, fmt.Errorf("valkeytest: cannot write the clock shim: %w", err)
	}
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("valkeytest: %s cannot compile the clock shim (%w): install gcc with the C library's headers, "+
			"on Debian and Ubuntu gcc and libc6-dev:\n%s", compiler, err, out)
	}
	return os.ReadFile(library)
}

func findCompiler() (string, error) {
	for _, name := range []string{"cc", "gcc"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("valkeytest: moving a server's clock needs a C compiler and there is neither cc nor gcc: " +
		"install gcc, on Debian and Ubuntu with libc6-dev")
}

// writeClockLibrary puts the shim into a directory and returns its path.
func writeClockLibrary(dir string) (string, error) {
	library, err := clockLibrary()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "clock_shim.so")
	if err := os.WriteFile(path, library, 0o700); err != nil {
		return "", fmt.Errorf("valkeytest: cannot write the clock shim: %w", err)
	}
	return path, nil
}

// clockShim is the clock of one server. It is safe for concurrent use.
type clockShim struct {
	library, file string
	mapping       []byte
	shared        *sharedClock // in mapping
}

// sharedClock is the memory that the server maps too, see testdata/clock_shim.c.
type sharedClock struct {
	offset atomic.Int64 // nanoseconds
	pid    atomic.Int64
}

func newClockShim(library, file string) (*clockShim, error) {
	fail := func(err error) (*clockShim, error) {
		return nil, fmt.Errorf("valkeytest: no file for a server's clock: %w", err)
	}
	size := int(unsafe.Sizeof(sharedClock{}))
	if err := cmp.Or(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, make([]byte, size), 0o600)); err != nil {
		return fail(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	mapping, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fail(err)
	}
	return &clockShim{library: library, file: file, mapping: mapping, shared: (*sharedClock)(unsafe.Pointer(&mapping[0]))}, nil
}

func (c *clockShim) add(d time.Duration) { c.shared.offset.Add(int64(d)) }

// reader returns the id of the process that last began to read this clock.
func (c *clockShim) reader() int { return int(c.shared.pid.Load()) }

func (c *clockShim) environment() []string {
	return []string{"LD_PRELOAD=" + c.library, "VALKEYTEST_CLOCK=" + c.file}
}

func (c *clockShim) close() error { return unix.Munmap(c.mapping) }
