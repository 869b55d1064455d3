package valkeytest

import (
	"os/exec"
	"runtime"
)

// launcher starts processes from one thread that it keeps until close. Linux
// sends the parent-death signal when the *thread* that forked ends, not the
// process (prctl(2), PR_SET_PDEATHSIG), and Go ends threads as it likes.
type launcher struct {
	commands chan command
	done     chan struct{}
}

type command struct {
	*exec.Cmd
	started chan<- error
}

func newLauncher() *launcher {
	l := &launcher{commands: make(chan command), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *launcher) run() {
	defer close(l.done)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for c := range l.commands {
		c.started <- c.Start()
	}
}

// start starts a process that dies with this one at the latest.
func (l *launcher) start(cmd *exec.Cmd) error {
	dieWithParent(cmd)
	started := make(chan error, 1)
	l.commands <- command{Cmd: cmd, started: started}
	return <-started
}

// close ends the thread. No process may be running any more.
func (l *launcher) close() {
	close(l.commands)
	<-l.done
}
