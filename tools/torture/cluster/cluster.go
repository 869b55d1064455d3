// Package cluster is real servers, and links to them that can be cut, slowed and narrowed.
package cluster

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
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// commandTimeout bounds a command that the cluster sends to a server itself.
const commandTimeout = 5 * time.Second

// age is what the servers' uptime says at first: more than any restart gate wants.
const age = 24 * time.Hour

// Cluster is a number of servers, each behind two links. It is safe for concurrent use; faults of
// one server must not overlap.
type Cluster struct {
	fleet *valkeytest.Fleet
	user  string // of clients, as URLs have it
	links map[plan.Side][]*link

	mu     sync.Mutex
	routes []*link // guarded by mu; those of Routes
}

// New starts the servers and the links. The servers write everything to disk; or they keep it in
// memory alone, then a restarted one is empty, and plan.RestartKeep fails. The zero Users are the
// default user alone.
func New(servers int, memory bool, users Users) (*Cluster, error) {
	opts, user := []valkeytest.Option{valkeytest.WithAge(age)}, ""
	if users.Prefix != "" {
		config, err := users.write()
		if err != nil {
			return nil, err
		}
		opts, user = append(opts, valkeytest.WithConfig(config), valkeytest.WithUser("operator", password)), users.Prefix+":"+password+"@"
	}
	if !memory {
		opts = append(opts, valkeytest.WithPersistence())
	}
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy's bandwidth toxic traces to the global logger
	fleet, err := valkeytest.New(servers, opts...)
	if err != nil {
		return nil, err
	}
	c := &Cluster{fleet: fleet, user: user, links: make(map[plan.Side][]*link)}
	for i, n := range fleet.Nodes() {
		for _, side := range []plan.Side{plan.Left, plan.Right} {
			l, err := newLink(fmt.Sprintf("server %d, %s", i+1, side), n.Addr())
			if err != nil {
				return nil, errors.Join(err, c.Close())
			}
			c.links[side] = append(c.links[side], l)
		}
	}
	return c, nil
}

// Len is how many servers there are.
func (c *Cluster) Len() int { return len(c.fleet.Nodes()) }

// URLs are the servers as one side's clients reach them.
func (c *Cluster) URLs(side plan.Side) []string {
	urls := make([]string, len(c.links[side]))
	for i, l := range c.links[side] {
		urls[i] = named(c.user+l.addr(), i)
	}
	return urls
}

// named is the URL of a server that has one name on all ways to it.
func named(way string, server int) string {
	return fmt.Sprintf("valkey://%s?name=server-%d", way, server+1)
}

// Routes makes a link to each server for a client of its own, and returns the servers as that
// client reaches them. What the client asks of server i takes distances[i] there and back. Faults
// of links do not strike these.
func (c *Cluster) Routes(client string, distances []time.Duration) ([]string, error) {
	var urls []string
	for i, n := range c.fleet.Nodes() {
		l, err := newLink(fmt.Sprintf("server %d, %s", i+1, client), n.Addr())
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.routes = append(c.routes, l)
		c.mu.Unlock()
		if err := l.strike(plan.Fault{Kind: plan.Latency, Amount: distances[i]}); err != nil {
			return nil, err
		}
		urls = append(urls, named(c.user+l.addr(), i))
	}
	return urls, nil
}

// Strike does what a fault of servers or links says.
func (c *Cluster) Strike(f plan.Fault) error {
	return c.each(f, func(n *valkeytest.Node, links []*link) error {
		switch f.Kind {
		case plan.RestartKeep, plan.RestartEmpty:
			return n.Kill()
		case plan.FreezeServer:
			return n.Freeze()
		case plan.ScriptFlush:
			return command(n, "SCRIPT", "FLUSH")
		case plan.FlushAll:
			return command(n, "FLUSHALL")
		case plan.ClockForward:
			return n.JumpClock(f.Amount)
		case plan.ClockBack:
			return n.JumpClock(-f.Amount)
		default:
			return all(links, func(l *link) error { return l.strike(f) })
		}
	})
}

// Heal puts right what Strike did.
func (c *Cluster) Heal(f plan.Fault) error {
	return c.each(f, func(n *valkeytest.Node, links []*link) error {
		switch f.Kind {
		case plan.RestartKeep:
			return n.Restart(true)
		case plan.RestartEmpty:
			return n.Restart(false)
		case plan.FreezeServer:
			return n.Thaw()
		case plan.ScriptFlush, plan.FlushAll:
			return nil
		case plan.ClockForward:
			return n.JumpClock(-f.Amount)
		case plan.ClockBack:
			return n.JumpClock(f.Amount)
		default:
			return all(links, (*link).heal)
		}
	})
}

// each does something to all servers of a fault at once, with the links that it strikes.
func (c *Cluster) each(f plan.Fault, do func(*valkeytest.Node, []*link) error) error {
	return all(f.Servers, func(n int) error {
		var links []*link
		for _, side := range []plan.Side{plan.Left, plan.Right} {
			if f.Side == side || f.Side == plan.Both {
				links = append(links, c.links[side][n])
			}
		}
		return do(c.fleet.Node(n), links)
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
	server := n.Client()
	if err := server.Do(ctx, server.B().Arbitrary(args...).Build()).Error(); err != nil {
		return fmt.Errorf("cluster: %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// lockKey is the key of a lease on a server.
type lockKey struct {
	server int
	name   string
	owner  string // identity of the client that set it
}

// lockKeys lists the keys of leases under a prefix that are on any server. Every server must be
// well.
func (c *Cluster) lockKeys(prefix string) (found []lockKey, err error) {
	for i, n := range c.fleet.Nodes() {
		ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
		defer cancel()
		server := n.Client()
		names, err := server.Do(ctx, server.B().Keys().Pattern(prefix+":*").Build()).AsStrSlice()
		if err != nil {
			return nil, fmt.Errorf("cluster: cannot list the keys of server %d: %w", i+1, err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "}") {
				continue
			}
			value, err := server.Do(ctx, server.B().Get().Key(name).Build()).ToString()
			switch {
			case valkey.IsValkeyNil(err):
				continue // gone meanwhile
			case err != nil:
				return nil, fmt.Errorf("cluster: cannot read %s of server %d: %w", name, i+1, err)
			}
			// A lock is the token, a blank, and the identity, a slash and a random text without
			// one.
			_, owner, _ := strings.Cut(value, " ")
			found = append(found, lockKey{i, name, owner[:max(strings.LastIndexByte(owner, '/'), 0)]})
		}
	}
	return found, nil
}

// Leftover lists the keys of leases under a prefix that are on servers and must not be: those of
// lives that stopped in order, but for a moment in which what they sent last is on its way, which
// is far shorter than any TTL; and those of lives that were killed, after the TTL.
func (c *Cluster) Leftover(prefix string, ttl time.Duration, lives []history.Life) ([]string, error) {
	const moment, pause = 200 * time.Millisecond, 20 * time.Millisecond
	killed := make(map[string]bool)
	for _, life := range lives {
		killed[life.Name] = life.Killed != 0
	}
	for began := time.Now(); ; time.Sleep(pause) {
		keys, err := c.lockKeys(prefix)
		if err != nil {
			return nil, err
		}
		var left []string
		expired, arrived := time.Since(began) > ttl+moment, time.Since(began) > moment
		for _, key := range keys {
			if !killed[key.owner] && arrived || expired {
				left = append(left, fmt.Sprintf("server %d: %s of %s", key.server+1, key.name, key.owner))
			}
		}
		if len(keys) == 0 || len(left) > 0 {
			return left, nil
		}
	}
}

// Close ends the links and kills the servers.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, links := range append(slices.Collect(maps.Values(c.links)), c.routes) {
		_ = all(links, func(l *link) error { l.close(); return nil })
	}
	return c.fleet.Close()
}
