package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/examples/internal/replicas/replicastest"
)

func TestMain(m *testing.M) {
	if replicastest.Called() {
		main()
	}
	goleak.VerifyTestMain(m)
}

// launch starts the program, which serves metrics at any ports.
func launch(t *testing.T, env []string, args ...string) *replicastest.Session {
	t.Helper()
	return replicastest.Launch(t, env, append([]string{"-metrics-port", "0"}, args...)...)
}

func TestUsage(t *testing.T) {
	for code, args := range map[int][]string{exitOK: {"-help"}, exitUsage: {"-replicas", "0"}} {
		s := launch(t, []string{replicas.NodesVariable + "=valkey://user:secret@127.0.0.1:1"}, args...)
		require.Equal(t, code, s.End(t))
		require.NotContains(t, s.Stderr()+s.Output(), "secret")
	}
}

func TestAddressOfAnotherMachine(t *testing.T) {
	s := launch(t, nil, "-listen", "192.0.2.1", "-replicas", "1") // an address of nobody's (RFC 5737)
	require.Equal(t, exitFailed, s.End(t))
	require.Contains(t, s.Stderr(), "cannot serve metrics")
}
