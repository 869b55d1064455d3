package crowd

import (
	"os/exec"
	"runtime"
)

// launcher starts processes from one thread that it keeps until close: Linux sends the parent-death signal when the
// thread that forked ends (prctl(2), PR_SET_PDEATHSIG).
type launcher struct {
	commands chan launch
	done     chan struct{}
}

type launch struct {
	cmd     *exec.Cmd
	started chan<- error
}

func newLauncher() *launcher {
	l := &launcher{commands: make(chan launch), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for c := range l.commands {
			c.started <- c.cmd.Start()
		}
	}()
	return l
}

// start starts a process that dies with this one at the latest.
func (l *launcher) start(cmd *exec.Cmd) error {
	setAttributes(cmd)
	started := make(chan error, 1)
	l.commands <- launch{cmd: cmd, started: started}
	return <-started
}

// close ends the thread. No process may be running any more.
func (l *launcher) close() {
	close(l.commands)
	<-l.done
}
