// Package crowd starts, harms and ends the client processes. None outlives this process, however that ends.
package crowd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/journal"
)

// Crowd is the clients, numbered from zero. It is safe for concurrent use.
type Crowd struct {
	launcher *launcher
	assign   func(number int) client.Assignment

	members []*member

	mu     sync.Mutex
	past   []*process // guarded by mu
	closed bool       // guarded by mu
}

// member is a client through all its lives.
type member struct {
	number int

	mu     sync.Mutex
	lives  int      // guarded by mu
	proc   *process // guarded by mu; nil while it is dead
	frozen bool     // guarded by mu
}

// New makes a crowd. assign says what a client is to do; its name is added.
func New(clients int, assign func(number int) client.Assignment) *Crowd {
	c := &Crowd{launcher: newLauncher(), assign: assign}
	for i := range clients {
		c.members = append(c.members, &member{number: i})
	}
	return c
}

// Number returns which client a name or the name of a lease belongs to: 3 for "c3.2/17", and -1 for no name.
func Number(name string) int {
	digits, _, _ := strings.Cut(strings.TrimPrefix(name, "c"), ".")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

// Start begins a life of a client that is dead, and waits until it works.
func (c *Crowd) Start(number int) error {
	const patience = 20 * time.Second
	m := c.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc != nil {
		return nil
	}
	m.lives++
	job := c.assign(number)
	job.Name = fmt.Sprintf("c%d.%d", number, m.lives)
	job.Seed += uint64(number)<<32 + uint64(m.lives)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return errors.New("crowd: closed")
	}
	p, err := launchProcess(c.launcher, job)
	if p != nil {
		c.past = append(c.past, p)
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	m.proc, m.frozen = p, false
	return p.await(client.Ready, patience)
}

// Kill ends a client with SIGKILL, frozen or not, and reports whether it was alive.
func (c *Crowd) Kill(number int) bool {
	m := c.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil {
		return false
	}
	m.proc.kill()
	m.proc = nil
	return true
}

// Pid returns the process id of a client, and zero if it is dead.
func (c *Crowd) Pid(number int) int {
	m := c.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil {
		return 0
	}
	return m.proc.cmd.Process.Pid
}

// Freeze stops a client with SIGSTOP, and reports whether it ran.
func (c *Crowd) Freeze(number int) bool {
	m := c.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil || m.frozen || m.proc.cmd.Process.Signal(signalStop) != nil {
		return false
	}
	m.frozen = true
	return true
}

// Thaw lets a frozen client go on.
func (c *Crowd) Thaw(number int) {
	m := c.members[number]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc != nil && m.frozen {
		_ = m.proc.cmd.Process.Signal(signalContinue) // fails only if it has ended
		m.frozen = false
	}
}

// Command sends all clients a command and waits for the answers of all, or until the patience of each is over.
func (c *Crowd) Command(command func(number int) string, answer string, patience time.Duration) error {
	errs := make([]error, len(c.members))
	var wg sync.WaitGroup
	for i, m := range c.members {
		wg.Go(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.proc == nil {
				errs[i] = fmt.Errorf("crowd: client %d is dead", i)
				return
			}
			if errs[i] = m.proc.tell(command(i)); errs[i] == nil {
				errs[i] = m.proc.await(answer, patience)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Stop ends all clients in order. One that does not end in time is killed, and that is an error.
func (c *Crowd) Stop(patience time.Duration) error {
	errs := make([]error, len(c.members))
	var wg sync.WaitGroup
	for i, m := range c.members {
		wg.Go(func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.proc == nil {
				return
			}
			defer func() { m.proc = nil }()
			if errs[i] = m.proc.tell(client.Stop); errs[i] != nil {
				return
			}
			select {
			case <-m.proc.exited:
			case <-time.After(patience):
				m.proc.kill()
				errs[i] = fmt.Errorf("crowd: client %s did not stop within %s", m.proc.name, patience)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close kills whoever is left, and returns all lives that there were.
func (c *Crowd) Close() []journal.Life {
	c.mu.Lock()
	defer c.mu.Unlock()
	lives := make([]journal.Life, len(c.past))
	for i, p := range c.past {
		if p.running() {
			p.kill()
		}
		p.mu.Lock()
		lives[i] = p.life
		p.mu.Unlock()
	}
	if !c.closed {
		c.closed = true
		c.launcher.close()
	}
	return lives
}
