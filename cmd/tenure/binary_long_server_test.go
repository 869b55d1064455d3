//go:build long

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The binary does in a process what the function does in a test: codes, streams, signals.
func TestBinary(t *testing.T) {
	t.Parallel()
	binary := build(t)
	f := startServers(t, 3)
	replica(t, f)
	environ := append(nodesAt(f.URLs()...), "TENURE_NODE_TIMEOUT=1s", "PATH="+os.Getenv("PATH"))
	run := func(args ...string) (code int, out, errors string) {
		cmd := exec.Command(binary, args...)
		cmd.Env = environ
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // the code tells
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	require.Eventually(t, func() bool {
		code, out, errors := run("status", "-o", "json")
		require.Equal(t, exitOK, code, "%s%s", out, errors)
		var d statusDocument
		require.NoError(t, json.Unmarshal([]byte(out), &d))
		return d.Jobs.Total == 4
	}, patience, 10*poll)
	code, out, errors := run("doctor")
	require.Equal(t, exitWarnings, code, "%s%s", out, errors)
	require.Contains(t, out, "not_persistent")
	code, _, errors = run("pause", "report")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errors, "say why")
	code, out, errors = run("pause", "report", "--force", "--why", "test", "--as", "ann")
	require.Equal(t, exitOK, code, errors)
	require.Contains(t, out, "paused by ann")

	// What waits ends with a signal, and says with which.
	require.Eventually(t, func() bool {
		code, _, errors = run("run-now", "slow", "--why", "test")
		return code == exitOK || code == exitRefused // it runs already: the answer was not heard in time
	}, patience, 10*poll, errors)
	var cmd *exec.Cmd
	var ended chan struct{}
	begin := func() {
		cmd, ended = exec.Command(binary, "pause", "slow", "--why", "test", "--wait", "--timeout", "10m"), make(chan struct{})
		cmd.Env = environ
		require.NoError(t, cmd.Start())
		go func(cmd *exec.Cmd, ended chan struct{}) {
			_ = cmd.Wait() // the code tells
			close(ended)
		}(cmd, ended)
	}
	begin()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, if all is well
		<-ended
	})
	require.Eventually(t, func() bool {
		select {
		case <-ended: // without a quorum, on a machine that is busy
			begin()
		default:
		}
		_, out, _ := run("jobs", "slow", "-o", "json")
		return strings.Contains(out, `"reason": "test"`)
	}, 2*patience, 10*poll)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	<-ended
	require.Contains(t, []int{exitSignal + int(syscall.SIGTERM), -1}, cmd.ProcessState.ExitCode(), "a signal that comes before it listens ends it, too")

	require.NoError(t, f.Node(0).Kill())
	code, out, _ = run("doctor")
	require.Equal(t, exitFaults, code)
	require.Contains(t, out, "FAULT down")
}
