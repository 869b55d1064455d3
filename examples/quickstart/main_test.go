package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// program makes the binary of the tests the program.
const program = "TENURE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if replicas.IsReplica() || os.Getenv(program) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// run runs the program to its end.
func run(t *testing.T, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), program+"=1")
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestStory(t *testing.T) {
	for name, args := range map[string]func(*testing.T) []string{
		"on nodes inside": func(*testing.T) []string { return nil },
		"on real servers": func(t *testing.T) []string {
			return []string{"-nodes", strings.Join(valkeytest.Start(t, 3).URLs(), ",")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, append(args(t), "-duration", "6s")...)
			require.NoError(t, err, out)
			for _, line := range []string{
				`replica [abc] \(pid [0-9]+\) runs tick [0-9:]{8}  token [0-9]+, attempt 1`,
				`KILLS replica [abc] \(pid [0-9]+\) in the middle of the run \(SIGKILL\)\n`,
				`replica [abc] \(pid [0-9]+\) has taken over, [0-9.]+m?s after the kill`,
				`\nOK: no tick ran twice, none was lost\n$`,
			} {
				require.Regexp(t, line, out)
			}
			require.Equal(t, 4, strings.Count(out, ") started\n"), "three replicas, and one again:\n%s", out)
			require.Equal(t, 3, strings.Count(out, ") exited\n"), "all in order:\n%s", out)
		})
	}
}

func TestNoServers(t *testing.T) {
	out, err := run(t, "-nodes", "valkey://user:secret@127.0.0.1:1,valkey://127.0.0.1:2,valkey://127.0.0.1:3")
	require.Error(t, err)
	require.Contains(t, out, "0 of 3 servers can be used, too few for a quorum: start them or correct -nodes")
	require.Contains(t, out, "127.0.0.1:1")
	require.NotContains(t, out, "secret")
}

func TestConclusion(t *testing.T) {
	for name, tc := range map[string]struct {
		runs map[int64][]int
		good bool
	}{
		"every tick once": {map[int64][]int{3: {1}, 4: {2}, 5: {1}}, true},
		"run again":       {map[int64][]int{3: {1, 2}}, true},
		"twice":           {map[int64][]int{3: {1}, 4: {1, 1}}, false},
		"lost":            {map[int64][]int{1: {1}, 3: {1}}, false},
	} {
		require.Equal(t, tc.good, (&story{runs: tc.runs}).conclude() == nil, name)
	}
}
