//go:build long

package runtest

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What docs/run.md says of flock(1), seen here.
func TestFlockBeside(t *testing.T) {
	lock := t.TempDir() + "/lock"
	flock := func(environ []string, args ...string) *started {
		cmd := exec.Command("flock", args...)
		cmd.Env = append(cmd.Environ(), environ...)
		return start(t, cmd)
	}
	t.Run("exit codes", func(t *testing.T) {
		require.Equal(t, 3, flock(nil, lock, "sh", "-c", "exit 3").code(t))
		require.Equal(t, 128+15, flock(nil, lock, "sh", "-c", "kill -15 $$").code(t))
		require.Equal(t, 69, flock(nil, lock, "no-such-program").code(t))
		require.Equal(t, 64, flock(nil, "-w", "soon", lock, "true").code(t))
	})
	// strike starts a command under a lock, strikes flock, and leaves the command.
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		ends   bool
	}{
		{"killed", syscall.SIGKILL, true},
		{"terminated", syscall.SIGTERM, true},
		{"frozen", syscall.SIGSTOP, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJournal(t)
			environ := append(j.worker(rolePlain, "first"), "TENURE_FENCING_TOKEN=1")
			s := flock(environ, lock, worker(t))
			j.await(t, "first", "beat", 1)
			require.NoError(t, syscall.Kill(s.Pid(), c.signal))
			if c.ends {
				<-s.Exited()
			}
			n := len(j.records(t))
			j.await(t, "first", "beat", n+20)
			pid := j.records(t)[0].pid
			require.True(t, lives(pid), "the command goes on, and hears nothing")
			require.Equal(t, 1, flock(nil, "-n", lock, "true").code(t), "the command has the lock now")
			require.Equal(t, 42, flock(nil, "-n", "-E", "42", lock, "true").code(t))
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			require.Eventually(t, func() bool { return !lives(pid) }, patience, poll)
			require.NoError(t, s.Kill())
			require.Zero(t, flock(nil, lock, "true").code(t))
		})
	}
	t.Run("what is left behind", func(t *testing.T) {
		j := newJournal(t)
		s := flock(append(j.worker(roleLeaves, "first"), "TENURE_FENCING_TOKEN=1"), lock, worker(t))
		require.Zero(t, s.code(t))
		left := j.survivors(t)
		require.Len(t, left, 1, "it goes on")
		require.Equal(t, 1, flock(nil, "-n", lock, "true").code(t), "and has the lock")
		require.NoError(t, syscall.Kill(left[0], syscall.SIGKILL))
	})
}
