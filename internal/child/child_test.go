package child_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/child"
)

func sleeper(t *testing.T) *child.Child {
	t.Helper()
	c, err := child.Start(exec.Command("sleep", "60"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Kill() })
	return c
}

func TestOutputInLines(t *testing.T) {
	cmd := self("talk")
	var got []string
	cmd.Stdout = child.Lines(func(line string) { got = append(got, line) })
	c, err := child.Start(cmd)
	require.NoError(t, err)
	require.EqualError(t, c.Err(), "exit status 3")
	require.Equal(t, []string{"one", "two"}, got, "all of it by the end, but for what is no line")
	require.False(t, c.Running())
}

func TestEnds(t *testing.T) {
	killed, terminated := sleeper(t), sleeper(t)
	require.True(t, killed.Running())
	require.NoError(t, killed.Freeze())
	require.NoError(t, killed.Kill(), "SIGKILL ends the frozen")
	require.NoError(t, killed.Kill(), "it has ended")
	require.EqualError(t, killed.Err(), "signal: killed")
	require.ErrorIs(t, killed.Freeze(), child.ErrEnded)
	require.ErrorIs(t, killed.Thaw(), child.ErrEnded)

	require.NoError(t, terminated.Freeze())
	require.NoError(t, terminated.Terminate(time.Minute), "it is thawed")
	require.EqualError(t, terminated.Err(), "signal: terminated")
}

func TestReplica(t *testing.T) {
	var got []string
	r, err := child.StartReplica("work", func(line string) { got = append(got, line) })
	require.NoError(t, err)
	require.True(t, r.Running())
	r.Stop()
	r.Stop()
	require.NoError(t, r.Err())
	require.Equal(t, []string{"before", "after"}, got)

	_, err = child.StartReplica("talk", func(string) {})
	require.EqualError(t, err, "child: the replica did not start: exit status 3")
}

func TestTerminateKillsInTheEnd(t *testing.T) {
	cmd, ready := exec.Command("sh", "-c", `trap "" TERM; echo ready; while :; do :; done`), make(chan struct{})
	cmd.Stdout = child.Lines(func(string) { close(ready) })
	c, err := child.Start(cmd)
	require.NoError(t, err)
	<-ready
	require.ErrorContains(t, c.Terminate(50*time.Millisecond), "ignored SIGTERM")
	require.False(t, c.Running())
}

func TestNoSuchProgram(t *testing.T) {
	_, err := child.Start(exec.Command("no-such-program"))
	require.Error(t, err)
	sleeper(t) // the next one has a thread
}

// self returns the command that runs the test binary as another process.
func self(role string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TENURE_REPLICA="+strconv.Quote(role))
	return cmd
}

func TestMain(m *testing.M) {
	var role string
	if err := child.Settings(&role); (err == nil) != child.IsReplica() {
		panic(err)
	}
	switch role {
	case "parent":
		parent()
	case "talk":
		fmt.Print("one\ntwo\nhalf")
		os.Exit(3)
	case "work":
		fmt.Println("before")
		child.Work()
		fmt.Println("after")
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// parent starts a running and a frozen child, prints their ids and never returns.
func parent() {
	var pids []any
	for range 2 {
		c, err := child.Start(exec.Command("sleep", "60"))
		if err != nil {
			panic(err)
		}
		pids = append(pids, c.Pid())
		if len(pids) == 2 {
			err = c.Freeze()
		}
		if err != nil {
			panic(err)
		}
	}
	fmt.Println(pids...)
	select {}
}
