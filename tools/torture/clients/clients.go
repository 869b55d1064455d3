// Package clients starts, harms and ends the client processes, which are this program again. None
// outlives this process, however that ends. [Main] is the other side: what a client process does.
package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

// Config is what clients have in common.
type Config struct {
	Count    int
	Spare    int                       // more of them, with the numbers from Count on, that only Start begins
	Letter   string                    // of their names: c in c3.2, the second process of client 3
	Journals string                    // the directory of their journals and logs
	Patience time.Duration             // how long one may take to stop in order
	Settings func(number int) Settings // of a process that begins
}

// Group is the clients, numbered from zero. It is safe for concurrent use.
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

// Number returns which client a name or the name of a lease belongs to: 3 for "c3.2/17", and -1 for
// no name.
func Number(name string) int {
	digits, _, _ := strings.Cut(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz"), ".")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

// lock returns a client, which its caller unlocks.
func (g *Group) lock(number int) *member {
	g.members[number].mu.Lock()
	return g.members[number]
}

// All does something for each number below a count, at once, and returns what went wrong.
func All(count int, do func(i int) error) error {
	errs := make([]error, count)
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Life is the name of the process that a client has or had last.
func (g *Group) Life(number int) (name string) {
	m := g.lock(number)
	defer m.mu.Unlock()
	return fmt.Sprintf("%s%d.%d", g.Letter, number, m.lives)
}

// Start begins a life of a client that is dead, and waits until it works.
func (g *Group) Start(number int) (err error) {
	m := g.lock(number)
	defer m.mu.Unlock()
	if m.proc != nil {
		return nil
	}
	m.lives++
	name := fmt.Sprintf("%s%d.%d", g.Letter, number, m.lives)
	if m.proc, err = g.launch(assignment{name, number, m.lives, g.Journals, g.Settings(number)}); err != nil {
		return fmt.Errorf("clients: cannot start client %s, whose log may say why: %w", name, err)
	}
	return nil
}

// StartAll starts all clients that are dead, but for spare ones.
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

// Stop ends a client in order. One that does not end in time is killed, and that is an error.
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

// concluding is a file that is there when clients are to do what they do last.
const concluding = "conclude"

// Conclude ends all clients in order, after what they do last.
func (g *Group) Conclude() error {
	if err := os.WriteFile(filepath.Join(g.Journals, concluding), nil, 0o600); err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	return g.StopAll()
}

// Lives are all that there were so far; those that go on end now.
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

// Close kills all that are left, and returns all lives that there were.
func (g *Group) Close() []history.Life {
	for number := range g.members {
		g.Kill(number)
	}
	return g.Lives()
}

// process is one life of a client.
type process struct {
	*child.Replica
	ended chan struct{} // closed when life has its end

	mu   sync.Mutex
	life history.Life // guarded by mu
}

// launch starts this program as a client.
func (g *Group) launch(a assignment) (*process, error) {
	told, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	p := &process{ended: make(chan struct{}), life: history.Life{Name: a.Name, Began: history.Now()}}
	if p.Replica, err = child.StartReplica(Variable+"="+string(told), func(string) {}); err != nil {
		return nil, err
	}
	go p.bury(filepath.Join(g.Journals, a.Name+logSuffix))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.past = append(g.past, p)
	return p, nil
}

// bury notes how the process ended, and what it said last.
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

// stop ends the process in order. One that does not end within the patience is killed.
func (p *process) stop(patience time.Duration) error {
	late := time.AfterFunc(patience, p.kill)
	_ = p.Thaw() // fails only if it has ended
	p.Stop()
	if <-p.ended; !late.Stop() {
		return fmt.Errorf("clients: client %s did not stop within %s", p.life.Name, patience)
	}
	return nil
}
