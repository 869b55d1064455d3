package runtest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// terminal is a pseudo-terminal, and what was written to it.
type terminal struct {
	*os.File

	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

// onTerminal starts a command in a session of its own, on a terminal.
func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	other, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = other, other, other
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, other.Close())
	term := &terminal{File: os.NewFile(uintptr(fd), "ptmx")}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p := make([]byte, 1024); ; {
			n, err := term.Read(p)
			term.mu.Lock()
			term.text.Write(p[:n])
			term.mu.Unlock()
			if err != nil {
				return // the last that had it has ended
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		_ = term.Close()
	})
	return term
}

func (term *terminal) await(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		term.mu.Lock()
		defer term.mu.Unlock()
		return strings.Contains(term.text.String(), text)
	}, patience, poll, text)
}

func (term *terminal) typed(t *testing.T, text string) {
	t.Helper()
	_, err := term.WriteString(text)
	require.NoError(t, err)
}

// With a terminal the command reads what is typed, Ctrl-C ends it, and Ctrl-Z stops it with its
// lease.
func TestTerminal(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	cmd := command(fleet, nil, "run", "a", "--ttl", "60s", "--", "sh", "-c", `read x; echo "got $x"; read x; echo "got $x too"; exec sleep 600`)
	term := onTerminal(t, cmd)
	term.typed(t, "one\n")
	term.await(t, "got one")
	term.typed(t, "\x1a") // Ctrl-Z
	term.await(t, "was stopped, and keeps its lease")
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	term.typed(t, "two\n")
	term.await(t, "got two too")
	term.typed(t, "\x03") // Ctrl-C
	require.Error(t, cmd.Wait())
	require.Equal(t, 128+2, cmd.ProcessState.ExitCode())
}
