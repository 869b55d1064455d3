package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/examples/internal/replicas/replicastest"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func TestMain(m *testing.M) {
	if replicastest.Called() {
		main()
	}
	goleak.VerifyTestMain(m)
}

func TestStory(t *testing.T) {
	servers := func(t *testing.T) []string {
		return []string{replicas.NodesVariable + "=" + strings.Join(valkeytest.Start(t, 3).URLs(), ",")}
	}
	for name, tc := range map[string]struct {
		mode  string
		nodes func(*testing.T) []string
		line  string
	}{
		"elector":                 {mode: modeElector, line: `nodes inside this process: 127.0.0.1`},
		"locker":                  {mode: modeLocker, line: `nodes inside this process: 127.0.0.1`},
		"elector on real servers": {mode: modeElector, nodes: servers, line: "real servers: 127.0.0.1"},
		"locker on real servers":  {mode: modeLocker, nodes: servers, line: "real servers: 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env []string
			if tc.nodes != nil {
				env = tc.nodes(t)
			}
			s := replicastest.Launch(t, env, "-duration", "6s", "-ttl", "1s", "-mode", tc.mode)
			code, out := s.End(t), s.Output()
			require.Equal(t, exitOK, code, "%s\n%s", out, s.Stderr())
			for _, line := range []string{
				tc.line,
				`replica [abc] \(pid [0-9]+\) runs tick [0-9:]{8}  token [0-9]+\n`,
				`KILLS replica [abc] \(pid [0-9]+\), .* \(SIGKILL\)\n`,
				`replica [abc] \(pid [0-9]+\) has taken over, [0-9.]+m?s after the kill`,
				`\nsummary: [0-9]+ ticks were due `,
				`\nOK: no tick ran twice, none was lost\n$`,
			} {
				require.Regexp(t, line, out)
			}
			require.Len(t, s.PIDs(t), 4, "three replicas, and one again:\n%s", out)
			require.Equal(t, 3, strings.Count(out, ") exited\n"), "all in order:\n%s", out)
		})
	}
}

func TestNoServers(t *testing.T) {
	s := replicastest.Launch(t, nil, "-nodes", "valkey://user:secret@127.0.0.1:1,valkey://127.0.0.1:2,valkey://127.0.0.1:3")
	require.Equal(t, exitFailed, s.End(t))
	require.Empty(t, s.Output())
	require.Contains(t, s.Stderr(), "0 of 3 servers can be used, too few for a quorum: start them or correct -nodes")
	require.Contains(t, s.Stderr(), "127.0.0.1:1")
	require.NotContains(t, s.Stderr(), "secret")
}

func TestUsage(t *testing.T) {
	for code, args := range map[int][]string{exitOK: {"-help"}, exitUsage: {"-duration", "1s"}} {
		s := replicastest.Launch(t, []string{replicas.NodesVariable + "=valkey://user:secret@127.0.0.1:1"}, args...)
		require.Equal(t, code, s.End(t))
		require.Contains(t, s.Stderr(), "-duration")
		require.NotContains(t, s.Stderr()+s.Output(), "secret")
	}
}

func TestInterrupted(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		for _, mode := range []string{modeElector, modeLocker} {
			t.Run(fmt.Sprint(signal, mode), func(t *testing.T) {
				t.Parallel()
				s := replicastest.Launch(t, nil, "-duration", "1m", "-mode", mode)
				s.Await(t, "runs tick")
				require.NoError(t, s.Process.Signal(signal))
				require.Equal(t, exitInterrupted, s.End(t), "%s\n%s", s.Output(), s.Stderr())
			})
		}
	}
}
