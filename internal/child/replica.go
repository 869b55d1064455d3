package child

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

const (
	variable = "TENURE_REPLICA" // the environment variable with the settings of a Replica, in JSON
	up       = "up"             // the line that a Replica prints when it works
)

// IsReplica reports whether this process was started as a replica, by StartReplica.
func IsReplica() bool { return os.Getenv(variable) != "" }

// Settings reads the settings of this process, a replica.
func Settings(into any) error {
	if err := json.Unmarshal([]byte(os.Getenv(variable)), into); err != nil {
		return fmt.Errorf("another process starts this one and tells it what to do; to start the program yourself unset %s", variable)
	}
	return nil
}

// Replica is a process that works until its input ends. It is safe for concurrent use.
type Replica struct {
	*Child
	stop func()
}

// StartReplica runs this program again as a replica, which reads its [Settings], and waits until
// the replica calls [Work]. It passes each other line that the replica prints to each.
func StartReplica(settings any, each func(line string)) (*Replica, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("child: cannot write the settings of a process: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("child: cannot find this program's file to start it again: %w", err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
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
