package place

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tenure-dev/tenure/internal/child"
)

// Variable is set for child processes, which are this program: main has to call RunChild then.
const Variable = "TENURE_VERSUS_ROLE"

// Role is what a child does: it works, calls ready with what its parent wants to know, reads from
// parent as long as it wants to be told more, and returns a last message. The reader ends when the
// parent goes or is done with the child.
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
	*child.Child
	role   string
	in     io.WriteCloser
	output *os.File
	out    *json.Decoder
	stderr strings.Builder
	ended  bool
}

// Spawn starts a child and waits until it is ready; what it says then goes into answer.
func Spawn(role string, spec, answer any) (*Child, error) {
	cmd, err := child.Self(Variable + "=" + role)
	if err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	c := &Child{role: role}
	cmd.Stderr = &c.stderr
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	output, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("place: %w", err)
	}
	c.output, c.out, cmd.Stdout = output, json.NewDecoder(output), write
	c.Child, err = child.Start(cmd)
	write.Close() // so that the output ends with the child
	if err != nil {
		output.Close()
		return nil, fmt.Errorf("place: cannot start a child: %w", err)
	}
	if err := json.NewEncoder(c.in).Encode(spec); err != nil {
		return nil, c.fail(err)
	}
	if err := c.out.Decode(answer); err != nil {
		return nil, c.fail(err)
	}
	return c, nil
}

func (c *Child) fail(err error) error {
	c.Kill()
	return fmt.Errorf("place: child %q: %w: %s", c.role, err, c.stderr.String())
}

// Result waits for the last message of a child that ends by itself, or when it is told to by the
// end of its input.
func (c *Child) Result(result any) error {
	if c.ended {
		return errors.New("place: the child has ended")
	}
	c.in.Close()
	if err := c.out.Decode(result); err != nil {
		return c.fail(err)
	}
	c.ended = true
	defer c.output.Close()
	if err := c.Err(); err != nil {
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
	_ = c.Child.Kill() // it may have ended by itself
	c.output.Close()
}

// End ends the child with SIGKILL. It may be called concurrently with Result, which then fails.
func (c *Child) End() { _ = c.Child.Kill() }
