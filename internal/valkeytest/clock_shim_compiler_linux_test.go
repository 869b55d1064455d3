package valkeytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestMissingCompilerSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := compileClockShim()
	require.ErrorContains(t, err, "install gcc")
	require.NotContains(t, err.Error(), "\n")
}

// A server that does not load the shim must not pass for one whose clock moves.
func TestServerThatIgnoresTheShim(t *testing.T) {
	compiled := clockLibrary
	t.Cleanup(func() { clockLibrary = compiled })
	clockLibrary = func() ([]byte, error) { return []byte("not a library"), nil }
	_, err := New(1, WithClock())
	require.ErrorContains(t, err, "ignores LD_PRELOAD")
}

// The shim moves every way to ask for the time of day, and no other clock.
func TestShimMovesWallClocksOnly(t *testing.T) {
	dir := t.TempDir()
	library, err := writeClockLibrary(dir)
	require.NoError(t, err)
	compiler, err := findCompiler()
	require.NoError(t, err)
	program := filepath.Join(dir, "probe")
	out, err := exec.Command(compiler, "-o", program, filepath.Join("testdata", "clock_probe.c")).CombinedOutput()
	require.NoError(t, err, string(out))
	shim, err := newClockShim(library, filepath.Join(dir, "clock"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shim.close()) })

	const slack = 20 * time.Second // for a program to start and end
	boot := func(clock int32) time.Duration {
		var ts unix.Timespec
		require.NoError(t, unix.ClockGettime(clock, &ts))
		return time.Duration(ts.Nano())
	}
	for _, jump := range []time.Duration{time.Hour, -2*time.Hour - 999_999_999} {
		shim.add(jump)
		probe := exec.Command(program)
		probe.Env = append(os.Environ(), shim.environment()...)
		out, err := probe.Output()
		require.NoError(t, err)
		wall := time.Duration(time.Now().UnixNano()) + time.Duration(shim.shared.offset.Load())
		want := map[string]time.Duration{
			"REALTIME": wall, "REALTIME_COARSE": wall, "gettimeofday": wall, "time": wall, "time*": wall,
			"MONOTONIC": boot(unix.CLOCK_MONOTONIC), "MONOTONIC_COARSE": boot(unix.CLOCK_MONOTONIC),
			"BOOTTIME": boot(unix.CLOCK_BOOTTIME),
		}
		for line := range strings.Lines(string(out)) {
			var name string
			var got int64
			_, err := fmt.Sscan(line, &name, &got)
			require.NoError(t, err, line)
			require.Contains(t, want, name)
			require.InDelta(t, want[name], got, float64(slack), name)
			delete(want, name)
		}
		require.Empty(t, want, "the program told of every clock")
	}
}
