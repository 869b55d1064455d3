package rival

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/valkey-io/valkey-go"
)

// ErrCannotWait is the floor's answer to Acquire.
var ErrCannotWait = errors.New("rival: it has no way to wait for a key")

// floor is the least that a quorum lock can do with valkey-go. It has a connection and a goroutine
// a node, sends the two commands of the Redlock algorithm (SET NX PX; a script that compares and
// deletes), and goes on with the quorum-th reply.
//
// It is no lock. It has one owner value for ever, and does not look whether a key was granted. It
// has no validity, no token, no gate, no timeout and no order: now and then a release overtakes its
// acquisition, and the key stays behind. It does not give up on slow nodes, so a frozen node
// gathers goroutines. Tenure's own commands cost the servers more, because they hand out tokens.
type floor struct {
	url     string // of the first server
	clients []valkey.Client
	px      time.Duration
	release *valkey.Lua
}

const floorOwner = "floor/AAAAAAAAAAAAAAAAAAAAAA" // as long as other owner values

// compareAndDelete is Redlock's release
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
const compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

// compareAndExtend is Redlock's extension.
const compareAndExtend = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`

// oneConnection is the value of valkey-go's PipelineMultiplex for one connection, which Tenure has
// too. By default a client has up to four connections, by the number of processors, and spreads
// commands over them, in smaller and more writes.
const oneConnection = -1

// dial connects to each server as valkey-go does by default, except for its cache and the number of
// connections. redsync gains by that too.
func dial(c Config) ([]valkey.Client, error) {
	var clients []valkey.Client
	for _, url := range c.URLs {
		o, err := valkey.ParseURL(url)
		if err == nil {
			o.ForceSingleClient, o.DisableCache, o.PipelineMultiplex = true, true, oneConnection
			c.Sent.dialer(&o)
			var client valkey.Client
			if client, err = valkey.NewClient(o); err == nil {
				clients = append(clients, client)
				continue
			}
		}
		hangUp(clients)
		return nil, fmt.Errorf("rival: cannot connect: %w", err)
	}
	return clients, nil
}

func hangUp(clients []valkey.Client) {
	for _, c := range clients {
		c.Close()
	}
}

func openFloor(c Config) (Rival, error) {
	clients, err := dial(c)
	if err != nil {
		return nil, err
	}
	return &floor{url: c.URLs[0], clients: clients, px: c.TTL, release: valkey.NewLuaScript(compareAndDelete)}, nil
}

// round sends to all nodes. It returns with the quorum-th reply, whatever the reply says, or with
// an error when a quorum cannot be reached any more.
func (f *floor) round(do func(valkey.Client) error) error {
	return f.each(func(_ int, c valkey.Client) error { return do(c) })
}

// each is round for commands that differ from node to node.
func (f *floor) each(do func(node int, c valkey.Client) error) error {
	replies := make(chan error, len(f.clients))
	for i, c := range f.clients {
		go func() { replies <- do(i, c) }()
	}
	quorum, failed := len(f.clients)/2+1, 0
	for got := 0; got < quorum; {
		if err := <-replies; err == nil || valkey.IsValkeyNil(err) {
			got++
		} else if failed++; failed > len(f.clients)-quorum {
			return err
		}
	}
	return nil
}

func (f *floor) Try(ctx context.Context, key string) (Held, error) {
	err := f.round(func(c valkey.Client) error {
		return c.Do(ctx, c.B().Set().Key(key).Value(floorOwner).Nx().Px(f.px).Build()).Error()
	})
	if err != nil {
		return nil, err
	}
	return &floorHeld{f, key}, nil
}

func (*floor) Acquire(context.Context, string) (Held, error) { return nil, ErrCannotWait }

func (f *floor) Close() error {
	hangUp(f.clients)
	return nil
}

type floorHeld struct {
	*floor
	key string
}

func (h *floorHeld) Release(ctx context.Context) error {
	keys, args := []string{h.key}, []string{floorOwner}
	return h.round(func(c valkey.Client) error { return h.release.Exec(ctx, c, keys, args).Error() })
}

// floorBatch is how many commands of an extension are built at once.
const floorBatch = 1000

// Keep takes the keys, and extends them from one goroutine a node, which pipelines.
func (f *floor) Keep(ctx context.Context, keys []string, every time.Duration) (func() error, error) {
	for _, key := range keys {
		if _, err := f.Try(ctx, key); err != nil {
			return nil, err
		}
	}
	extend := valkey.NewLuaScript(compareAndExtend)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, len(f.clients))
	for _, c := range f.clients {
		go func() { ended <- f.keep(ctx, c, extend, keys, every) }()
	}
	return func() error {
		cancel()
		var errs []error
		for range f.clients {
			errs = append(errs, <-ended)
		}
		return errors.Join(errs...)
	}, nil
}

func (f *floor) keep(ctx context.Context, c valkey.Client, extend *valkey.Lua, keys []string, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	args := []string{floorOwner, strconv.FormatInt(f.px.Milliseconds(), 10)}
	batch := make([]valkey.LuaExec, 0, floorBatch)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for rest := keys; len(rest) > 0; {
			n := min(len(rest), floorBatch)
			batch = batch[:0]
			for i := range n {
				batch = append(batch, valkey.LuaExec{Keys: rest[i : i+1], Args: args})
			}
			rest = rest[n:]
			for _, reply := range extend.ExecMulti(context.WithoutCancel(ctx), c, batch...) {
				if kept, err := reply.AsInt64(); err != nil || kept != 1 {
					return fmt.Errorf("rival: the floor lost a key: %d, %w", kept, err)
				}
			}
		}
	}
}
