package child

import (
	"os/exec"
	"runtime"
	"sync"
)

// thread starts all children. Linux sends the parent-death signal when the thread that forked ends,
// not the process (prctl(2), PR_SET_PDEATHSIG), and Go ends threads as it likes. So this one is
// kept for as long as there is a child.
type thread struct {
	mu       sync.Mutex
	children int           // guarded by mu; those that run or are being started
	starts   chan start    // guarded by mu
	ended    chan struct{} // guarded by mu
}

type start struct {
	cmd *exec.Cmd
	err chan<- error
}

var shared thread

// start starts a command, and the thread if this is the only child.
func (t *thread) start(cmd *exec.Cmd) error {
	t.mu.Lock()
	if t.children == 0 {
		t.starts, t.ended = make(chan start), make(chan struct{})
		go run(t.starts, t.ended)
	}
	t.children++
	starts := t.starts
	t.mu.Unlock()
	started := make(chan error, 1)
	starts <- start{cmd, started}
	err := <-started
	if err != nil {
		t.leave()
	}
	return err
}

// leave ends the thread if there are no other children.
func (t *thread) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.children--; t.children == 0 {
		close(t.starts)
		<-t.ended
	}
}

func run(starts <-chan start, ended chan<- struct{}) {
	defer close(ended)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for s := range starts {
		s.err <- s.cmd.Start()
	}
}
