package rival

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/valkey-io/valkey-go"
)

// batcher is the floor with one writer a node, which sends whatever is waiting as one pipeline, one
// after the other: about the most that many callers can get out of the floor's two commands, on
// servers that are near. It is as little of a lock.
type batcher struct {
	*floor
	merges  bool   // see merger.go
	sha     string // of the script of a release, which all servers have
	writers []*writer
	writing sync.WaitGroup
}

// ballot is one operation, on all nodes.
type ballot struct {
	key      string
	release  bool
	acquired *ballot // of a release
	segments []int   // of an acquisition whose release may be merged; by node, see merger.go

	quorum, spare int32 // replies that decide; errors that do not
	replies, errs atomic.Int32
	decided       chan error // capacity 1
}

// writer sends to one node.
type writer struct {
	of     *batcher
	node   int
	client valkey.Client
	*merger
	wake chan struct{} // capacity 1
	end  chan struct{}

	commands valkey.Commands // of the batch that is sent

	mu    sync.Mutex
	queue []*ballot // guarded by mu
}

func openBatcher(c Config) (Rival, error) { return newBatcher(c, compareAndDelete, false) }

func newBatcher(c Config, release string, merges bool) (Rival, error) {
	r, err := openFloor(c)
	if err != nil {
		return nil, err
	}
	b := &batcher{floor: r.(*floor), merges: merges}
	ctx, cancel := context.WithTimeout(context.Background(), mimicTimeout)
	defer cancel()
	for i, client := range b.clients {
		if b.sha, err = client.Do(ctx, client.B().ScriptLoad().Script(release).Build()).ToString(); err != nil {
			return nil, errors.Join(fmt.Errorf("rival: cannot load a script: %w", err), b.Close())
		}
		w := &writer{of: b, node: i, client: client, wake: make(chan struct{}, 1), end: make(chan struct{})}
		if merges {
			w.merger = &merger{}
		}
		b.writers = append(b.writers, w)
		b.writing.Go(w.run)
	}
	return b, nil
}

// Close must not be called before all operations have returned. Those that are left on slow nodes
// are sent.
func (b *batcher) Close() error {
	for _, w := range b.writers {
		close(w.end)
	}
	b.writing.Wait()
	return b.floor.Close()
}

func (b *batcher) Try(_ context.Context, key string) (Held, error) {
	v := newBallot(key, false, int32(len(b.writers)))
	if b.merges {
		v.segments = make([]int, len(b.writers))
	}
	if err := b.vote(v); err != nil {
		return nil, err
	}
	return &batcherHeld{b, v}, nil
}

type batcherHeld struct {
	*batcher
	acquired *ballot
}

func (h *batcherHeld) Release(context.Context) error {
	v := newBallot(h.acquired.key, true, int32(len(h.writers)))
	v.acquired = h.acquired
	return h.vote(v)
}

// vote returns with the quorum-th reply.
func (b *batcher) vote(v *ballot) error {
	for _, w := range b.writers {
		w.send(v)
	}
	return <-v.decided
}

func newBallot(key string, release bool, nodes int32) *ballot {
	quorum := nodes/2 + 1
	return &ballot{key: key, release: release, quorum: quorum, spare: nodes - quorum, decided: make(chan error, 1)}
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

func (w *writer) send(v *ballot) {
	w.mu.Lock()
	w.queue = append(w.queue, v)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns what is waiting. The array of the batch before is used again.
func (w *writer) take(before []*ballot) []*ballot {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch := w.queue
	w.queue = before[:0]
	return batch
}

func (w *writer) run() {
	var batch []*ballot
	for ended := false; !ended; {
		if len(batch) == 0 {
			select {
			case <-w.wake:
			case <-w.end:
				ended = true
			}
		}
		if batch = w.take(batch); len(batch) == 0 {
			continue
		}
		if w.merger != nil {
			w.exchangeMerged(batch)
		} else {
			w.exchange(batch)
		}
	}
}

// exchange has the node answer a batch.
func (w *writer) exchange(batch []*ballot) {
	w.commands = w.commands[:0]
	for _, v := range batch {
		w.commands = append(w.commands, w.command(v))
	}
	for i, reply := range w.client.DoMulti(context.Background(), w.commands...) {
		batch[i].count(reply.Error())
	}
}

func (w *writer) command(v *ballot) valkey.Completed {
	if v.release {
		return w.free(v.key)
	}
	return w.client.B().Set().Key(v.key).Value(floorOwner).Nx().Px(w.of.px).Build()
}

// free runs the script of a release.
func (w *writer) free(keys ...string) valkey.Completed {
	return w.client.B().Evalsha().Sha1(w.of.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(floorOwner).Build()
}
