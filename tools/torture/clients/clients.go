// Package clients starts, harms and ends the client processes, which are this program again. No
// client process outlives this one, however this one ends. [Main] is the other side: it runs a
// client process.
package clients

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

// Config is the configuration that all clients share.
type Config struct {
	Count    int
	Spare    int                       // further clients, numbered from Count on, that only Start starts
	Journals string                    // the directory of their journals and logs
	Patience time.Duration             // how long a client may take to stop in order
	Settings func(number int) Settings // of a process that begins
}

// Group is a set of clients, numbered from zero. It is safe for concurrent use.
type Group struct {
	Config
	members []*member

	mu   sync.Mutex
	past []*process // guarded by mu
}

// member is a client through all its lives.
type member struct {
	mu    sync.Mutex
	lives int      // guarded by mu
	proc  *process // guarded by mu; nil while it is dead
}

// New makes a group whose clients are all dead, and the directory of their journals.
func New(cfg Config) (*Group, error) {
	if err := os.MkdirAll(cfg.Journals, 0o700); err != nil {
		return nil, fmt.Errorf("clients: no directory for the journals: %w", err)
	}
	g := &Group{Config: cfg}
	for range cfg.Count + cfg.Spare {
		g.members = append(g.members, &member{})
	}
	return g, nil
}

// Number returns the number of the client to which the name of a process, lease or run belongs: 3
// for "c3.2/17". It returns -1 for no name.
func Number(name string) int {
	n := -1
	_, _ = fmt.Sscanf(name, "c%d.", &n)
	return n
}

// lock locks a client and returns it. The caller unlocks it.
func (g *Group) lock(number int) *member {
	g.members[number].mu.Lock()
	return g.members[number]
}

// All calls do for each number below count, concurrently, and returns the joined errors.
func All(count int, do func(i int) error) error {
	errs := make([]error, count)
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Life returns the name of a client's process, or of its last one if it is dead.
func (g *Group) Life(number int) (name string) {
	m := g.lock(number)
	defer m.mu.Unlock()
	return fmt.Sprintf("c%d.%d", number, m.lives)
}

// Start starts a process for a client that is dead, and waits until it works. Start does nothing if
// the client is alive.
func (g *Group) Start(number int) (err error) {
	m := g.lock(number)
	defer m.mu.Unlock()
	if m.proc != nil {
		return nil
	}
	m.lives++
	name := fmt.Sprintf("c%d.%d", number, m.lives)
	if m.proc, err = g.launch(assignment{name, number, m.lives, g.Journals, g.Settings(number)}); err != nil {
		return fmt.Errorf("clients: cannot start client %s, whose log may say why: %w", name, err)
	}
	return nil
}

// StartAll starts all clients that are dead, except the spare ones.
func (g *Group) StartAll() error { return All(g.Count, g.Start) }

// Kill ends a client with SIGKILL, frozen or not, and reports whether it was alive.
func (g *Group) Kill(number int) (alive bool) {
	m := g.lock(number)
	defer m.mu.Unlock()
	if alive = m.proc != nil; alive {
		m.proc.kill()
		m.proc = nil
	}
	return alive
}

// KillAll kills all clients at once.
func (g *Group) KillAll() {
	_ = All(g.Count, func(number int) error { g.Kill(number); return nil })
}

// Freeze stops a client with SIGSTOP, and reports whether it was alive.
func (g *Group) Freeze(number int) (alive bool) {
	m := g.lock(number)
	defer m.mu.Unlock()
	return m.proc != nil && m.proc.Freeze() == nil
}

// Thaw lets a client go on, if it is frozen.
func (g *Group) Thaw(number int) {
	m := g.lock(number)
	defer m.mu.Unlock()
	if m.proc != nil {
		_ = m.proc.Thaw() // fails only if it has ended
	}
}

// Stop ends a client in order. A client that does not end in time is killed, and Stop returns an
// error.
func (g *Group) Stop(number int) error {
	m := g.lock(number)
	defer m.mu.Unlock()
	p := m.proc
	if m.proc = nil; p == nil {
		return nil
	}
	return p.stop(g.Patience)
}

// StopAll ends all clients in order.
func (g *Group) StopAll() error { return All(len(g.members), g.Stop) }

// concluding is the name of a file that tells clients to conclude before they end.
const concluding = "conclude"

// Conclude ends all clients in order. Each concludes first, see Begin.
func (g *Group) Conclude() error {
	if err := os.WriteFile(filepath.Join(g.Journals, concluding), nil, 0o600); err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	return g.StopAll()
}

// Lives returns all lives so far. The end of a life that goes on is now.
func (g *Group) Lives() (lives []history.Life) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.past {
		p.mu.Lock()
		life := p.life
		p.mu.Unlock()
		if life.Ended == 0 {
			life.Ended = history.Now()
		}
		lives = append(lives, life)
	}
	return lives
}

// Close kills all clients that are left, and returns all lives.
func (g *Group) Close() []history.Life {
	for number := range g.members {
		g.Kill(number)
	}
	return g.Lives()
}

// process is one life of a client.
type process struct {
	*child.Replica
	ended chan struct{} // closed when life.Ended is set

	mu   sync.Mutex
	life history.Life // guarded by mu
}

// launch starts this program as a client.
func (g *Group) launch(a assignment) (p *process, err error) {
	p = &process{ended: make(chan struct{}), life: history.Life{Name: a.Name, Began: history.Now()}}
	if p.Replica, err = child.StartReplica(a, func(string) {}); err != nil {
		return nil, err
	}
	go p.bury(filepath.Join(g.Journals, a.Name+logSuffix))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.past = append(g.past, p)
	return p, nil
}

// bury waits for the end of the process, and notes how it ended and the end of its log.
func (p *process) bury(log string) {
	defer close(p.ended)
	err := p.Err()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life.Ended = history.Now()
	if err != nil {
		p.life.Err = err.Error()
		said, _ := os.ReadFile(log)
		p.life.Said = strings.TrimSpace(string(said[max(0, len(said)-2000):]))
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

// stop ends the process in order. A process that does not end within the patience is killed.
func (p *process) stop(patience time.Duration) error {
	late := time.AfterFunc(patience, p.kill)
	_ = p.Thaw() // fails only if it has ended
	p.Stop()
	if <-p.ended; !late.Stop() {
		return fmt.Errorf("clients: client %s did not stop within %s", p.life.Name, patience)
	}
	return nil
}
