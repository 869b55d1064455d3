//go:build linux

package supervise

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the terminal from which tenure was started, in the foreground. The command runs in a
// process group of its own, which may read the terminal only while that group is in the foreground.
type terminal struct{ own int } // tenure's process group

// newTerminal returns nil if standard input is not a terminal, or if tenure is not in its
// foreground.
func newTerminal(stdin io.Reader) *terminal {
	file, ok := stdin.(*os.File)
	if !ok || file != os.Stdin {
		return nil
	}
	t := &terminal{unix.Getpgrp()}
	if group, err := unix.IoctlGetInt(unix.Stdin, unix.TIOCGPGRP); err != nil || group != t.own {
		return nil
	}
	return t
}

// take puts tenure's group into the foreground.
func (t *terminal) take() { t.give(t.own) }

// give puts a process group into the foreground.
func (t *terminal) give(group int) {
	signal.Ignore(quiet...)
	defer signal.Reset(quiet...)
	_ = unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, group)
}

// quiet lists the signals with which a terminal stops processes that use it from the background.
var quiet = []os.Signal{syscall.SIGTTOU, syscall.SIGTTIN}
