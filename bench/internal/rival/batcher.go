package rival

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"
)

// batcher is the floor with one writer a node. A writer takes all operations that wait and sends
// them in one DoMulti: a SET NX PX for each acquisition, and one script that compares and deletes
// all keys that are released. One script costs the servers less than a script for each key. This is
// about the most that many callers can get out of the floor's commands, and as little of a lock.
//
// Releases come last in a batch. So a caller that acquires the key that it has just released may be
// overtaken by its own release on a slow node, and then has no key there. The batcher does not
// look.
type batcher struct {
	*floor
	sha     string // of the script of releases, which all servers have
	writers []*writer
	writing sync.WaitGroup
}

// ballot is one operation, on all nodes.
type ballot struct {
	key           string
	release       bool
	quorum, spare int32 // quorum: replies that decide; spare: errors that do not
	replies, errs atomic.Int32
	decided       chan error // capacity 1; each ballot sends one value, so the channel can be used again
}

// writer sends to one node.
type writer struct {
	of     *batcher
	client valkey.Client
	queue  chan *ballot // closed at the end
}

// compareAndDeleteAll is compareAndDelete of many keys.
const compareAndDeleteAll = `local values, mine = redis.call("mget",unpack(KEYS)), {}
for i = 1, #KEYS do if values[i] == ARGV[1] then mine[#mine + 1] = KEYS[i] end end
if #mine > 0 then redis.call("del",unpack(mine)) end
return #mine`

const (
	// mergeMost bounds the keys of one script: Lua's unpack has room for 8,000.
	mergeMost = 1000
	// queueMost is how many operations a slow node may be behind before it delays the callers.
	queueMost    = 1 << 16
	setupTimeout = 10 * time.Second
)

func openBatcher(c Config) (Rival, error) {
	r, err := openFloor(c)
	if err != nil {
		return nil, err
	}
	b := &batcher{floor: r.(*floor)}
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	for _, client := range b.clients {
		if b.sha, err = client.Do(ctx, client.B().ScriptLoad().Script(compareAndDeleteAll).Build()).ToString(); err != nil {
			return nil, errors.Join(fmt.Errorf("rival: cannot load a script: %w", err), b.Close())
		}
		w := &writer{b, client, make(chan *ballot, queueMost)}
		b.writers = append(b.writers, w)
		b.writing.Go(w.run)
	}
	return b, nil
}

// Close must not be called before all operations have returned. It sends those that are left for
// slow nodes.
func (b *batcher) Close() error {
	for _, w := range b.writers {
		close(w.queue)
	}
	b.writing.Wait()
	return b.floor.Close()
}

func (b *batcher) Try(_ context.Context, key string) (Held, error) {
	if err := b.vote(key, false); err != nil {
		return nil, err
	}
	return &batcherHeld{b, key}, nil
}

type batcherHeld struct {
	*batcher
	key string
}

func (h *batcherHeld) Release(context.Context) error { return h.vote(h.key, true) }

var channels = sync.Pool{New: func() any { return make(chan error, 1) }}

// vote sends an operation to all nodes, and returns with the quorum-th reply or one error too many.
func (b *batcher) vote(key string, release bool) error {
	nodes := int32(len(b.writers))
	v := &ballot{key: key, release: release, quorum: nodes/2 + 1, spare: nodes - nodes/2 - 1, decided: channels.Get().(chan error)}
	for _, w := range b.writers {
		w.queue <- v
	}
	err := <-v.decided
	channels.Put(v.decided)
	return err
}

func (v *ballot) count(err error) {
	switch {
	case err == nil || valkey.IsValkeyNil(err):
		if v.replies.Add(1) == v.quorum {
			v.decided <- nil
		}
	case v.errs.Add(1) == v.spare+1:
		v.decided <- err
	}
}

func (w *writer) run() {
	var batch []*ballot
	for v := range w.queue {
		for batch = append(batch[:0], v); len(w.queue) > 0; { // nobody else takes from the queue
			batch = append(batch, <-w.queue)
		}
		w.exchange(batch)
	}
}

// exchange sends a batch to the node and counts its replies.
func (w *writer) exchange(batch []*ballot) {
	var commands []valkey.Completed
	var acquired, released []*ballot
	var keys []string
	for _, v := range batch {
		if v.release {
			released, keys = append(released, v), append(keys, v.key)
			continue
		}
		acquired = append(acquired, v)
		commands = append(commands, w.client.B().Set().Key(v.key).Value(floorOwner).Nx().Px(w.of.px).Build())
	}
	for rest := keys; len(rest) > 0; {
		n := min(len(rest), mergeMost)
		commands = append(commands, w.client.B().Evalsha().Sha1(w.of.sha).Numkeys(int64(n)).Key(rest[:n]...).Arg(floorOwner).Build())
		rest = rest[n:]
	}
	for i, reply := range w.client.DoMulti(context.Background(), commands...) {
		if i < len(acquired) {
			acquired[i].count(reply.Error())
			continue
		}
		n := min(len(released), mergeMost)
		for _, v := range released[:n] {
			v.count(reply.Error())
		}
		released = released[n:]
	}
}
