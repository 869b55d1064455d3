package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

// process is one life of a client.
type process struct {
	*child.Child
	name  string
	stdin io.Writer
	ready chan struct{} // closed when it says so
	ended chan struct{} // closed when life has its end

	mu   sync.Mutex
	life history.Life // guarded by mu
}

// launch starts this program as a client.
func launch(job Assignment) (*process, error) {
	line, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	cmd, err := child.Self(Variable + "=" + job.Name)
	if err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	stderr, err := os.Create(filepath.Join(job.Journals, job.Name+".stderr"))
	if err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	defer stderr.Close()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("clients: no pipe to client %s: %w", job.Name, err)
	}
	p := &process{
		name: job.Name, stdin: stdin, ready: make(chan struct{}), ended: make(chan struct{}),
		life: history.Life{Name: job.Name, Began: history.Now()},
	}
	cmd.Stderr = stderr
	cmd.Stdout = child.Lines(func(line string) {
		if line == ready {
			close(p.ready)
		}
	})
	if p.Child, err = child.Start(cmd); err != nil {
		return nil, fmt.Errorf("clients: cannot start client %s: %w", job.Name, err)
	}
	go p.bury(stderr.Name())
	return p, p.tell(string(line))
}

// bury notes how the process ended.
func (p *process) bury(stderr string) {
	defer close(p.ended)
	err := p.Err()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life.Ended = history.Now()
	if err != nil {
		p.life.Err = err.Error()
		said, _ := os.ReadFile(stderr)
		p.life.Stderr = last(string(said), 2000)
	}
}

func last(text string, most int) string {
	if text = strings.TrimSpace(text); len(text) > most {
		return "..." + text[len(text)-most:]
	}
	return text
}

// tell sends a line. That the process has ended is not an error: it shows in its life.
func (p *process) tell(line string) error {
	_, err := io.WriteString(p.stdin, line+"\n")
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// await waits until the client works.
func (p *process) await(patience time.Duration) error {
	select {
	case <-p.ready:
		return nil
	case <-p.ended:
		return fmt.Errorf("clients: client %s ended before it worked", p.name)
	case <-time.After(patience):
		return fmt.Errorf("clients: client %s does not work within %s", p.name, patience)
	}
}

// kill ends the process with SIGKILL, if it has not ended.
func (p *process) kill() {
	p.mu.Lock()
	if p.life.Killed == 0 && p.life.Ended == 0 && p.Running() {
		p.life.Killed = history.Now()
	}
	p.mu.Unlock()
	_ = p.Kill() // fails only if it has ended
	<-p.ended
}
