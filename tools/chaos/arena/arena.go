// Package arena is where it all happens: real servers, and links to them that can be cut, slowed and narrowed.
package arena

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/tools/chaos/schedule"
)

// commandTimeout bounds a command that the arena sends to a server itself.
const commandTimeout = 5 * time.Second

// age is what the servers' uptime says at first: more than any restart gate wants.
const age = 24 * time.Hour

// Arena is a number of servers, each behind two links. It is safe for concurrent use; faults of one server must not
// overlap.
type Arena struct {
	fleet *valkeytest.Fleet
	links map[schedule.Side][]*link

	mu     sync.Mutex
	routes []*link // guarded by mu; those of Routes
}

// New starts the servers, which write everything to disk, and the links.
func New(servers int) (*Arena, error) { return open(servers, valkeytest.WithPersistence()) }

// NewInMemory is New with servers that keep nothing on disk: a restarted one is empty, and
// schedule.RestartKeep fails.
func NewInMemory(servers int) (*Arena, error) { return open(servers) }

func open(servers int, opts ...valkeytest.Option) (*Arena, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy's bandwidth toxic traces to the global logger
	fleet, err := valkeytest.New(servers, append(opts, valkeytest.WithAge(age))...)
	if err != nil {
		return nil, err
	}
	a := &Arena{fleet: fleet, links: make(map[schedule.Side][]*link)}
	for i, n := range fleet.Nodes() {
		for _, side := range []schedule.Side{schedule.Left, schedule.Right} {
			l, err := newLink(fmt.Sprintf("server %d, %s", i+1, side), n.Addr())
			if err != nil {
				return nil, errors.Join(err, a.Close())
			}
			a.links[side] = append(a.links[side], l)
		}
	}
	return a, nil
}

// URLs are the servers as one side's clients reach them.
func (a *Arena) URLs(side schedule.Side) []string {
	urls := make([]string, len(a.links[side]))
	for i, l := range a.links[side] {
		urls[i] = "valkey://" + l.addr()
	}
	return urls
}

// Routes makes a link to each server for a client of its own, and returns the servers as that
// client reaches them. What the client asks of server i takes distances[i] there and back. Faults
// of links do not strike these.
func (a *Arena) Routes(client string, distances []time.Duration) ([]string, error) {
	var urls []string
	for i, n := range a.fleet.Nodes() {
		l, err := newLink(fmt.Sprintf("server %d, %s", i+1, client), n.Addr())
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		a.routes = append(a.routes, l)
		a.mu.Unlock()
		if err := l.strike(schedule.Fault{Kind: schedule.Latency, Amount: distances[i]}); err != nil {
			return nil, err
		}
		urls = append(urls, "valkey://"+l.addr())
	}
	return urls, nil
}

// Strike does what a fault of servers or links says.
func (a *Arena) Strike(f schedule.Fault) error {
	return a.each(f, func(n *valkeytest.Node, links []*link) error {
		switch f.Kind {
		case schedule.RestartKeep, schedule.RestartEmpty:
			return n.Kill()
		case schedule.FreezeServer:
			return n.Freeze()
		case schedule.ScriptFlush:
			return command(n, "SCRIPT", "FLUSH")
		case schedule.FlushAll:
			return command(n, "FLUSHALL")
		case schedule.ClockForward:
			return n.JumpClock(f.Amount)
		case schedule.ClockBack:
			return n.JumpClock(-f.Amount)
		default:
			return all(links, func(l *link) error { return l.strike(f) })
		}
	})
}

// Heal puts right what Strike did.
func (a *Arena) Heal(f schedule.Fault) error {
	return a.each(f, func(n *valkeytest.Node, links []*link) error {
		switch f.Kind {
		case schedule.RestartKeep:
			return n.Restart(true)
		case schedule.RestartEmpty:
			return n.Restart(false)
		case schedule.FreezeServer:
			return n.Thaw()
		case schedule.ScriptFlush, schedule.FlushAll:
			return nil
		case schedule.ClockForward:
			return n.JumpClock(-f.Amount)
		case schedule.ClockBack:
			return n.JumpClock(f.Amount)
		default:
			return all(links, (*link).heal)
		}
	})
}

// each does something to all servers of a fault at once, with the links that it strikes.
func (a *Arena) each(f schedule.Fault, do func(*valkeytest.Node, []*link) error) error {
	return all(f.Nodes, func(n int) error {
		var links []*link
		for _, side := range []schedule.Side{schedule.Left, schedule.Right} {
			if f.Side == side || f.Side == schedule.Both {
				links = append(links, a.links[side][n])
			}
		}
		return do(a.fleet.Node(n), links)
	})
}

func all[T any](things []T, do func(T) error) error {
	errs := make([]error, len(things))
	var wg sync.WaitGroup
	for i, thing := range things {
		wg.Go(func() { errs[i] = do(thing) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func command(n *valkeytest.Node, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	c := n.Client()
	if err := c.Do(ctx, c.B().Arbitrary(args...).Build()).Error(); err != nil {
		return fmt.Errorf("arena: %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// LockKey is the key of a lease on a server.
type LockKey struct {
	Server int // counted from zero
	Name   string
	Owner  string // identity of the client that set it
}

func (k LockKey) String() string {
	return fmt.Sprintf("server %d: %s of %s", k.Server+1, k.Name, k.Owner)
}

// LockKeys lists the keys of leases under a prefix that are on any server. Counters are left out. Every server must be
// well.
func (a *Arena) LockKeys(prefix string) ([]LockKey, error) {
	var found []LockKey
	for i, n := range a.fleet.Nodes() {
		ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
		defer cancel()
		c := n.Client()
		names, err := c.Do(ctx, c.B().Keys().Pattern(prefix+":*").Build()).AsStrSlice()
		if err != nil {
			return nil, fmt.Errorf("arena: cannot list the keys of server %d: %w", i+1, err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "}") {
				continue
			}
			value, err := c.Do(ctx, c.B().Get().Key(name).Build()).ToString()
			switch {
			case valkey.IsValkeyNil(err):
				continue // gone meanwhile
			case err != nil:
				return nil, fmt.Errorf("arena: cannot read %s of server %d: %w", name, i+1, err)
			}
			// The owner value is the identity, a slash and a random text without one.
			owner := value[:max(strings.LastIndexByte(value, '/'), 0)]
			found = append(found, LockKey{Server: i, Name: name, Owner: owner})
		}
	}
	return found, nil
}

// Stuck is how many links had to be made anew because toxiproxy was stuck.
func (a *Arena) Stuck() int {
	stuck := 0
	for _, links := range a.links {
		for _, l := range links {
			stuck += l.replacements()
		}
	}
	return stuck
}

// Close ends the links and kills the servers.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, links := range append(slices.Collect(maps.Values(a.links)), a.routes) {
		_ = all(links, func(l *link) error { l.close(); return nil })
	}
	return a.fleet.Close()
}
