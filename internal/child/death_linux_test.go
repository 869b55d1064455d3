package child_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/child"
)

// However this process ends, its children end too, frozen ones as well.
func TestChildrenDieWithTheProcess(t *testing.T) {
	cmd := self("parent")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var running, frozen int
	_, scanErr := fmt.Fscan(out, &running, &frozen)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.NoError(t, scanErr)
	for _, pid := range []int{running, frozen} {
		require.NotZero(t, pid)
		require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, time.Millisecond)
	}
}

// gone reports whether a process has ended. What nobody has reaped yet counts.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err)
	}
	_, fields, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(fields, []byte("Z")) || bytes.HasPrefix(fields, []byte("X"))
}

// The kernel sends the parent-death signal when the thread that forked ends.
// Calling Start from a thread that ends must not be fatal.
func TestChildSurvivesTheThreadThatAskedForIt(t *testing.T) {
	var c *child.Child
	endThread(t, func() {
		var err error
		c, err = child.Start(exec.Command("sleep", "60"))
		require.NoError(t, err)
	})
	select {
	case <-c.Exited():
		t.Errorf("the process ended with the thread: %v", c.Err())
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, c.Kill())
}

// endThread runs f on a thread of its own and waits until the thread is gone.
func endThread(t *testing.T, f func()) {
	t.Helper()
	tids := make(chan int)
	for {
		go func() {
			runtime.LockOSThread()
			if syscall.Gettid() == os.Getpid() { // the main thread never ends
				runtime.UnlockOSThread()
				tids <- 0
				return
			}
			f()
			tids <- syscall.Gettid() // a locked goroutine takes its thread along
		}()
		if tid := <-tids; tid != 0 {
			task := fmt.Sprintf("/proc/self/task/%d", tid)
			require.Eventually(t, func() bool {
				_, err := os.Stat(task)
				return os.IsNotExist(err)
			}, 10*time.Second, time.Millisecond)
			return
		}
	}
}
