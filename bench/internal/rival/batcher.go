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
	sha     string // of compareAndDelete, which all servers have
	writers []*writer
	writing sync.WaitGroup
}

// ballot is one operation, on all nodes.
type ballot struct {
	key     string
	release bool

	quorum, spare int32 // replies that decide; errors that do not
	replies, errs atomic.Int32
	decided       chan error // capacity 1
}

// writer sends to one node.
type writer struct {
	of     *batcher
	client valkey.Client
	wake   chan struct{} // capacity 1
	end    chan struct{}

	mu    sync.Mutex
	queue []*ballot // guarded by mu
}

func openBatcher(c Config) (Rival, error) {
	r, err := openFloor(c)
	if err != nil {
		return nil, err
	}
	b := &batcher{floor: r.(*floor)}
	ctx, cancel := context.WithTimeout(context.Background(), mimicTimeout)
	defer cancel()
	for _, client := range b.clients {
		if b.sha, err = client.Do(ctx, client.B().ScriptLoad().Script(compareAndDelete).Build()).ToString(); err != nil {
			return nil, errors.Join(fmt.Errorf("rival: cannot load a script: %w", err), b.Close())
		}
		w := &writer{of: b, client: client, wake: make(chan struct{}, 1), end: make(chan struct{})}
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

// vote returns with the quorum-th reply.
func (b *batcher) vote(key string, release bool) error {
	v := newBallot(key, release, int32(len(b.writers)))
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
	var commands valkey.Commands
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
		commands = commands[:0]
		for _, v := range batch {
			commands = append(commands, w.command(v))
		}
		for i, reply := range w.client.DoMulti(context.Background(), commands...) {
			batch[i].count(reply.Error())
		}
	}
}

func (w *writer) command(v *ballot) valkey.Completed {
	if v.release {
		return w.client.B().Evalsha().Sha1(w.of.sha).Numkeys(1).Key(v.key).Arg(floorOwner).Build()
	}
	return w.client.B().Set().Key(v.key).Value(floorOwner).Nx().Px(w.of.px).Build()
}
