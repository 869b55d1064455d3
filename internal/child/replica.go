package child

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// up is the line that a Replica prints when it works.
const up = "up"

// Replica is a process that works until its input ends. It is safe for concurrent use.
type Replica struct {
	*Child
	stop func()
}

// StartReplica runs this program again as a replica, with more in its environment, and waits until
// the replica calls [Work]. It passes each other line that the replica prints to each.
func StartReplica(environment string, each func(line string)) (*Replica, error) {
	cmd, err := Self(environment)
	if err != nil {
		return nil, err
	}
	works := make(chan struct{})
	cmd.Stderr = os.Stderr
	cmd.Stdout = Lines(func(line string) {
		if line == up {
			close(works)
			return
		}
		each(line)
	})
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("child: cannot make a pipe to a process: %w", err)
	}
	c, err := Start(cmd)
	if err != nil {
		return nil, err
	}
	r := &Replica{c, sync.OnceFunc(func() {
		_ = stdin.Close()
		<-c.Exited()
	})}
	select {
	case <-works:
		return r, nil
	case <-c.Exited():
		r.Stop()
		return nil, fmt.Errorf("child: the replica did not start: %v", c.Err())
	}
}

// Stop ends the replica's input and waits for the end of the process.
func (r *Replica) Stop() { r.stop() }

// Work announces that this process, a replica, works. It returns when the replica is to end.
func Work() {
	fmt.Println(up)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
