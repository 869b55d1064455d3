package place

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

// Variable is set for child processes, which are this program: main has to call RunChild then.
const Variable = "TENURE_VERSUS_ROLE"

// Role is what a child does: it works, calls ready with what its parent wants to know, reads from parent as long as it
// wants to be told more, and returns a last message. The reader ends when the parent goes or is done with the child.
type Role func(spec json.RawMessage, parent *bufio.Reader, ready func(any) error) (result any, err error)

// RunChild plays the role that Variable names, and returns the exit code.
func RunChild(roles map[string]Role) int {
	in := bufio.NewReader(os.Stdin)
	err := func() error {
		name := os.Getenv(Variable)
		role, ok := roles[name]
		if !ok {
			return fmt.Errorf("place: there is no role %q", name)
		}
		line, err := in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("place: no task: %w", err)
		}
		out := json.NewEncoder(os.Stdout)
		result, err := role(line, in, out.Encode)
		if err != nil {
			return err
		}
		return out.Encode(result)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Child is a process of this program in another role. It is not safe for concurrent use.
type Child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr strings.Builder
	ended  bool
}

// Spawn starts a child and waits until it is ready; what it says then goes into answer.
func Spawn(role string, spec, answer any) (*Child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	c := &Child{cmd: exec.Command(program)}
	c.cmd.Env = append(os.Environ(), Variable+"="+role)
	c.cmd.Stderr = &c.stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	c.in, c.out = in, json.NewDecoder(out)
	if err := startTied(c.cmd); err != nil {
		return nil, fmt.Errorf("place: cannot start a child: %w", err)
	}
	if err := json.NewEncoder(in).Encode(spec); err != nil {
		return nil, c.fail(role, err)
	}
	if err := c.out.Decode(answer); err != nil {
		return nil, c.fail(role, err)
	}
	return c, nil
}

func (c *Child) fail(role string, err error) error {
	c.Kill()
	return fmt.Errorf("place: child %q: %w: %s", role, err, c.stderr.String())
}

// Result waits for the last message of a child that ends by itself, or when it is told to by the end of its input.
func (c *Child) Result(result any) error {
	if c.ended {
		return errors.New("place: the child has ended")
	}
	c.in.Close()
	if err := c.out.Decode(result); err != nil {
		return c.fail(c.cmd.Args[0], err)
	}
	c.ended = true
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("place: child: %w: %s", err, c.stderr.String())
	}
	return nil
}

// Kill ends the child with SIGKILL, if it has not ended, and waits for its end.
func (c *Child) Kill() {
	if c.ended {
		return
	}
	c.ended = true
	_ = c.cmd.Process.Kill() // it may have ended by itself
	_ = c.cmd.Wait()
}

// End sends SIGKILL and does not wait. It may be called concurrently with Result, which then fails.
func (c *Child) End() { _ = c.cmd.Process.Kill() }

// launches go to one thread that never ends: Linux sends the parent-death signal when the thread that forked ends, not the process
// (prctl(2), PR_SET_PDEATHSIG).
var launches = sync.OnceValue(func() chan<- launch {
	c := make(chan launch)
	go launcher(c)
	return c
})

type launch struct {
	cmd     *exec.Cmd
	started chan<- error
}

func launcher(c <-chan launch) {
	runtime.LockOSThread()
	for l := range c {
		l.started <- l.cmd.Start()
	}
}

// startTied starts a process that dies with this one at the latest.
func startTied(cmd *exec.Cmd) error {
	dieWithParent(cmd)
	started := make(chan error, 1)
	launches() <- launch{cmd, started}
	return <-started
}
