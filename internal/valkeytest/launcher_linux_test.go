package valkeytest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The kernel sends the parent-death signal when the thread that forked ends.
// Calling start from a thread that ends must not be fatal.
func TestProcessSurvivesThreadThatAskedForIt(t *testing.T) {
	l := newLauncher()
	t.Cleanup(l.close)
	cmd := exec.Command("sleep", "60")
	endThread(t, func() { require.NoError(t, l.start(cmd)) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		<-ended
	})
	select {
	case <-ended:
		t.Fatalf("the process ended with the thread: %s", cmd.ProcessState)
	case <-time.After(50 * time.Millisecond):
	}
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
