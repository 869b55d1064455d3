// Package clients starts, harms and ends the client processes, which are this program again. None
// outlives this process, however that ends. [Main] is the other side: what a client process does.
package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/tools/torture/history"
)

// beginsWithin is how long a client may take until it works.
const beginsWithin = 20 * time.Second

// Config is what clients have in common.
type Config struct {
	Count    int
	Spare    int                        // more of them, with the numbers from Count on, that only Start begins
	Letter   string                     // of their names: c in c3.2, the second process of client 3
	Journals string                     // the directory of their journals and logs
	Patience time.Duration              // how long one may take to stop in order
	Settings func(number, life int) any // what a process reads with Process.Settings
}

// Group is the clients, numbered from zero. It is safe for concurrent use.
type Group struct {
	Config
	members []*member

	mu     sync.Mutex
	past   []*process // guarded by mu
	closed bool       // guarded by mu
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

// Life is the name of the process that a client has or had last.
func (g *Group) Life(number int) string {
	m := g.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	return g.name(number, m.lives)
}

func (g *Group) name(number, life int) string { return fmt.Sprintf("%s%d.%d", g.Letter, number, life) }

// all does something to all clients at once.
func (g *Group) all(do func(number int) error) error {
	errs := make([]error, len(g.members))
	var wg sync.WaitGroup
	for i := range g.members {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Start begins a life of a client that is dead, and waits until it works.
func (g *Group) Start(number int) error {
	m := g.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc != nil {
		return nil
	}
	m.lives++
	settings, err := json.Marshal(g.Settings(number, m.lives))
	if err != nil {
		return fmt.Errorf("clients: no settings for client %d: %w", number, err)
	}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return errors.New("clients: closed")
	}
	p, err := launch(Assignment{Name: g.name(number, m.lives), Number: number, Journals: g.Journals, Settings: settings})
	if p != nil {
		g.past = append(g.past, p)
	}
	g.mu.Unlock()
	if err != nil {
		return err
	}
	m.proc = p
	return p.await(beginsWithin)
}

// StartAll starts all clients that are dead, but for spare ones.
func (g *Group) StartAll() error {
	return g.all(func(number int) error {
		if number >= g.Count {
			return nil
		}
		return g.Start(number)
	})
}

// Kill ends a client with SIGKILL, frozen or not, and reports whether it was alive.
func (g *Group) Kill(number int) bool {
	m := g.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil {
		return false
	}
	m.proc.kill()
	m.proc = nil
	return true
}

// KillAll kills all clients at once.
func (g *Group) KillAll() {
	_ = g.all(func(number int) error { g.Kill(number); return nil })
}

// Freeze stops a client with SIGSTOP, and reports whether it was alive.
func (g *Group) Freeze(number int) bool {
	m := g.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc != nil && m.proc.Freeze() == nil
}

// Thaw lets a client go on, if it is frozen.
func (g *Group) Thaw(number int) {
	m := g.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc != nil {
		_ = m.proc.Thaw() // fails only if it has ended
	}
}

// Conclude ends all clients in order, after what they do last.
func (g *Group) Conclude() error {
	return g.all(func(number int) error { return g.end(number, conclude) })
}

// Stop ends a client in order. One that does not end in time is killed, and that is an error.
func (g *Group) Stop(number int) error { return g.end(number, stop) }

func (g *Group) end(number int, word string) error {
	m := g.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil {
		return nil
	}
	p := m.proc
	m.proc = nil
	_ = p.Thaw() // fails only if it has ended
	if err := p.tell(word); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(g.Patience):
		p.kill()
		return fmt.Errorf("clients: client %s did not stop within %s", p.name, g.Patience)
	}
}

// StopAll ends all clients in order.
func (g *Group) StopAll() error { return g.all(g.Stop) }

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
	g.mu.Lock()
	g.closed = true
	past := slices.Clone(g.past)
	g.mu.Unlock()
	for _, p := range past {
		p.kill()
	}
	return g.Lives()
}
