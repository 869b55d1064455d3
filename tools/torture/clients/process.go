package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

// process is one life of a client.
type process struct {
	*child.Child
	ready chan struct{} // closed when it says so
	ended chan struct{} // closed when life has its end

	mu   sync.Mutex
	life history.Life // guarded by mu
}

// launch starts this program as a client, and waits until it works.
func (g *Group) launch(a assignment) error {
	told, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("clients: no settings for client %s: %w", a.Name, err)
	}
	cmd, err := child.Self(Variable + "=" + string(told))
	if err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	stderr, err := os.Create(filepath.Join(a.Journals, a.Name+".stderr"))
	if err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	defer stderr.Close()
	p := &process{ready: make(chan struct{}), ended: make(chan struct{}), life: history.Life{Name: a.Name, Began: history.Now()}}
	cmd.Stderr = stderr
	cmd.Stdout = child.Lines(func(string) { close(p.ready) })
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("clients: closed before client %s", a.Name)
	}
	if p.Child, err = child.Start(cmd); err != nil {
		return fmt.Errorf("clients: cannot start client %s: %w", a.Name, err)
	}
	g.past = append(g.past, p)
	go p.bury(stderr.Name())
	g.members[a.Number].proc = p
	return nil
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
		p.life.Stderr = strings.TrimSpace(string(said[max(0, len(said)-2000):]))
	}
}

// await waits until the client works.
func (p *process) await() error {
	const patience = 20 * time.Second
	select {
	case <-p.ready:
		return nil
	case <-p.ended:
		return fmt.Errorf("clients: client %s ended before it worked", p.life.Name)
	case <-time.After(patience):
		return fmt.Errorf("clients: client %s does not work within %s", p.life.Name, patience)
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

// stop ends the process in order. One that does not end within the patience is killed.
func (p *process) stop(patience time.Duration) error {
	late := history.Now().Add(patience)
	err := p.Terminate(patience)
	<-p.ended
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.life.Killed = late
		return fmt.Errorf("clients: client %s did not stop: %w", p.life.Name, err)
	}
	return nil
}
