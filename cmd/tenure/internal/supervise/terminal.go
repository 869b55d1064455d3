//go:build linux

package supervise

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is that which tenure was started from, in the foreground. Its command is in a process
// group of its own, and may not read the terminal unless that group is in the foreground.
type terminal struct{ own int } // the group of tenure

// newTerminal returns nil if standard input is no terminal, or another's by now.
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

// take puts tenure into the foreground.
func (t *terminal) take() { t.give(t.own) }

// give puts a group into the foreground.
func (t *terminal) give(group int) {
	signal.Ignore(quiet...)
	defer signal.Reset(quiet...)
	_ = unix.IoctlSetPointerInt(unix.Stdin, unix.TIOCSPGRP, group)
}

// quiet are the signals with which a terminal stops those that use it from the background.
var quiet = []os.Signal{syscall.SIGTTOU, syscall.SIGTTIN}
