// Package rival makes Tenure and its peers do the same work: lock a key, wait for it, keep it and
// release it.
package rival

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// Held is a lock that is held.
type Held interface {
	// Release releases the lock, and returns an error if it was not held any more.
	Release(ctx context.Context) error
}

// Extender is a Held that the caller has to extend, see Kind.ByHand.
type Extender interface {
	Extend(ctx context.Context) error
}

// Rival is one process's use of a library. It is safe for concurrent use.
type Rival interface {
	// Try makes one attempt, with as little work as the library allows.
	Try(ctx context.Context, key string) (Held, error)
	// Acquire waits for the key as the library waits by default. It returns ErrCannotWait if the
	// library cannot wait.
	Acquire(ctx context.Context, key string) (Held, error)
	Close() error
}

// library is a Rival that locks by one function, whether it waits or not.
type library struct {
	lock func(ctx context.Context, key string, wait bool) (Held, error)
	end  func() error
}

func (l library) Try(ctx context.Context, key string) (Held, error) { return l.lock(ctx, key, false) }

func (l library) Acquire(ctx context.Context, key string) (Held, error) {
	return l.lock(ctx, key, true)
}

func (l library) Close() error { return l.end() }

// Watcher is a Held that knows by itself whether it was lost.
type Watcher interface{ Err() error }

// Keeper is a Rival that keeps many keys at once in a way of its own.
type Keeper interface {
	// Keep takes the keys and extends them until stop is called. stop returns the errors.
	Keep(ctx context.Context, keys []string, every time.Duration) (stop func() error, err error)
}

// Config is the configuration of a Rival.
type Config struct {
	URLs []string
	TTL  time.Duration
	Sent *Sent `json:"-"` // counts what is sent, if it is set
}

// Kind is a library and a way to use it.
type Kind struct {
	Name   string // in tables
	Module string // for its version
	// Servers is how many of the five servers the rival locks on. A rival that uses one server does
	// less work, and survives less.
	Servers int
	// ByHand means that the caller extends each lock, from a goroutine of its own.
	ByHand bool
	// Key returns the name on its servers of the key whose expiry is that of the lock.
	Key  func(key string) string
	Open func(Config) (Rival, error)
}

func same(key string) string { return key }

func tenureKey(key string) string { return redlock.DefaultPrefix + ":{" + key + "}" }

// The rivals.
var (
	Tenure = &Kind{Name: "Tenure", Module: "github.com/tenure-dev/tenure", Servers: 5,
		Key: tenureKey, Open: openTenure}
	// TenureStandby is Tenure while another process waits for another key of the prefix.
	TenureStandby = &Kind{Name: "Tenure, with a standby", Module: "github.com/tenure-dev/tenure", Servers: 5,
		Key: tenureKey, Open: openStandby}
	Floor = &Kind{Name: "floor", Module: valkeyModule, Servers: 5, Key: same, Open: openFloor}
	// Batcher is the floor with one writer a node.
	Batcher = &Kind{Name: "floor, batching", Module: valkeyModule, Servers: 5, Key: same, Open: openBatcher}
	// Oracle is the floor with a hand-over: the servers are told which waiter is next.
	Oracle = &Kind{Name: "floor, next known", Module: valkeyModule, Servers: 5, Key: same, Open: openOracle}
	// Redsync uses the pool of this package, on the client that Tenure uses.
	Redsync    = &Kind{Name: "redsync", Module: redsyncModule, Servers: 5, ByHand: true, Key: same, Open: openRedsync}
	Redislock  = &Kind{Name: "redislock", Module: "github.com/bsm/redislock", Servers: 1, ByHand: true, Key: same, Open: openRedislock}
	Valkeylock = &Kind{Name: "valkeylock", Module: valkeyModule, Servers: 1,
		Key: func(key string) string { return "valkeylock:0:" + key }, Open: openValkeylock}
)

// All returns the rivals in the order of the tables.
func All() []*Kind {
	return []*Kind{Floor, Batcher, Oracle, Tenure, TenureStandby, Redsync, Redislock, Valkeylock}
}

// Named returns the rival of that name.
func Named(name string) (*Kind, error) {
	for _, k := range All() {
		if k.Name == name {
			return k, nil
		}
	}
	return nil, fmt.Errorf("rival: there is no %q: use a name from the tables", name)
}

const (
	valkeyModule  = "github.com/valkey-io/valkey-go"
	redsyncModule = "github.com/go-redsync/redsync/v4"
)
