package rival

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/valkey-io/valkey-go"
)

// oracle is the floor with the least that a hand-over can do. A release deletes the key and
// publishes to the next waiter in one script. The next waiter locks when a quorum of the servers
// has called it. No server has to say which waiter is next: all contenders of a key are in this
// process, which knows. So the oracle is no queue either, and no lock.
type oracle struct {
	*floor
	channel string
	conns   []valkey.DedicatedClient
	free    *valkey.Lua
	turns   sync.Map // the waiting turns, by their ids
}

// freeAndCall is compareAndDelete, and calls the next waiter.
const freeAndCall = `redis.call("publish",ARGV[2],ARGV[3])
` + compareAndDelete

// turn is one wait for a key.
type turn struct {
	of   *oracle
	id   string
	come chan struct{} // has room for the calls of all servers
}

// line is the contenders for a key, in order.
type line struct {
	mu      sync.Mutex
	held    bool    // guarded by mu
	waiting []*turn // guarded by mu
}

// lines has the lines by first server and key.
var lines sync.Map

// ids numbers oracles and turns.
var ids atomic.Int64

func nextID() string { return strconv.FormatInt(ids.Add(1), 10) }

func openOracle(c Config) (_ Rival, err error) {
	r, err := openFloor(c)
	if err != nil {
		return nil, err
	}
	o := &oracle{floor: r.(*floor), channel: "next-of-" + nextID(), free: valkey.NewLuaScript(freeAndCall)}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	for _, client := range o.clients {
		conn, _ := client.Dedicate()
		o.conns = append(o.conns, conn)
		conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(m valkey.PubSubMessage) { o.called(m.Message) }})
		if err := conn.Do(ctx, conn.B().Subscribe().Channel(o.channel).Build()).Error(); err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	return o, nil
}

func (o *oracle) Close() error {
	for _, c := range o.conns {
		c.Close()
	}
	return o.floor.Close()
}

// called passes a server's call on to the turn with that id.
func (o *oracle) called(id string) {
	if t, waits := o.turns.Load(id); waits {
		t.(*turn).come <- struct{}{}
	}
}

func (o *oracle) line(key string) *line {
	l, _ := lines.LoadOrStore(o.url+" "+key, &line{})
	return l.(*line)
}

// Try locks if, as far as this process knows, the key is not held.
func (o *oracle) Try(ctx context.Context, key string) (Held, error) {
	if !o.line(key).take(nil) {
		return nil, errors.New("rival: the key is held")
	}
	return o.lock(ctx, key)
}

func (o *oracle) lock(ctx context.Context, key string) (Held, error) {
	if _, err := o.floor.Try(ctx, key); err != nil {
		return nil, err
	}
	return &oracleHeld{o, key}, nil
}

func (o *oracle) Acquire(ctx context.Context, key string) (Held, error) {
	t := &turn{of: o, id: nextID(), come: make(chan struct{}, len(o.clients))}
	o.turns.Store(t.id, t)
	defer o.turns.Delete(t.id)
	if l := o.line(key); !l.take(t) {
		if err := t.wait(ctx, l); err != nil {
			return nil, err
		}
	}
	return o.lock(context.WithoutCancel(ctx), key)
}

// wait returns when a quorum of servers has called the turn, or when ctx ends before its turn has
// come.
func (t *turn) wait(ctx context.Context, l *line) error {
	for range len(t.of.clients)/2 + 1 {
		select {
		case <-t.come:
			continue
		case <-ctx.Done():
		}
		if l.leave(t) {
			return ctx.Err()
		}
		<-t.come // its turn has come, so the call is on its way
	}
	return nil
}

// take takes a key that is not held. Otherwise it puts the turn, if there is one, at the end of the
// line.
func (l *line) take(t *turn) (free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if free = !l.held; !free && t != nil {
		l.waiting = append(l.waiting, t)
	}
	l.held = true
	return free
}

// leave takes the turn out of the line, and reports whether it was still waiting there.
func (l *line) leave(t *turn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, t)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return true
}

// next hands the key to the turn that has waited longest, and returns it. If no turn waits, the key
// is free and next returns nil.
func (l *line) next() *turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.held = false
		return nil
	}
	t := l.waiting[0]
	l.waiting = l.waiting[1:]
	return t
}

type oracleHeld struct {
	*oracle
	key string
}

func (h *oracleHeld) Release(ctx context.Context) error {
	t := h.line(h.key).next()
	if t == nil {
		return (&floorHeld{h.floor, h.key}).Release(ctx)
	}
	keys, args := []string{h.key}, []string{floorOwner, t.of.channel, t.id}
	return h.round(func(c valkey.Client) error { return h.free.Exec(ctx, c, keys, args).Error() })
}
