package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
	"github.com/tenure-dev/tenure/internal/child"
)

// task is the work of another process: one of these. Such a process can be killed, and its CPU and
// memory are those of the rival alone.
type task struct {
	Holder *holderTask
	Ticks  *ticksTask
}

// process is this program with a task.
type process struct {
	*child.Replica
	said string
}

// spawn starts a process with a task, and waits until it works. The process does not outlive ctx.
func spawn(ctx context.Context, t task) (p *process, err error) {
	p = &process{}
	if p.Replica, err = child.StartReplica(t, func(line string) { p.said = line }); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = p.Kill() })
	return p, nil
}

// result lets the process go on to its end, and reads the result that it prints then.
func (p *process) result(into any) error {
	p.Stop()
	if err := p.Err(); err != nil {
		return fmt.Errorf("versus: the process: %w", err)
	}
	return json.Unmarshal([]byte(p.said), into)
}

// playTask runs the task of this process and prints the result.
func playTask() error {
	var t task
	err := child.Settings(&t)
	if err != nil {
		return err
	}
	var result any
	if t.Holder != nil {
		result, err = t.Holder.play()
	} else {
		result, err = t.Ticks.play()
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// holderTask is the task of holding keys.
type holderTask struct {
	Rival   string
	Config  rival.Config
	Key     string        // prefix of the names, see keys
	Keys    int           // how many
	Measure time.Duration // how long to hold
}

// holderReport is the cost of holding keys.
type holderReport struct {
	CPU        time.Duration // while the keys were held
	Heap       int64         // growth since before the first key, after a collection
	RSS        int64         // growth since before the first
	Goroutines int           // while the keys were held
}

// acquirers is how many goroutines acquire the keys.
const acquirers = 64

func (t *holderTask) play() (*holderReport, error) {
	k, err := rival.Named(t.Rival)
	if err != nil {
		return nil, err
	}
	r, err := k.Open(t.Config)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := &holder{kind: k, rival: r, ttl: t.Config.TTL}
	runtime.GC()
	before := stat.Used()
	ctx := context.Background()
	if err := h.take(ctx, keys(t.Key, t.Keys)); err != nil {
		return nil, err
	}
	child.Work()
	held := stat.Used()
	time.Sleep(t.Measure)
	after := stat.Used()
	runtime.GC()
	return &holderReport{
		CPU: after.CPU - held.CPU, Heap: int64(stat.Used().Heap) - int64(before.Heap), RSS: int64(after.RSS) - int64(before.RSS),
		Goroutines: after.Goroutines,
	}, h.release(ctx)
}

// holder holds keys in the way of its rival.
type holder struct {
	kind  *rival.Kind
	rival rival.Rival
	ttl   time.Duration
	held  []rival.Held
	stop  func() error // of a rival.Keeper

	mu        sync.Mutex
	lost      error // guarded by mu; the last error
	lostCount int   // guarded by mu
	ended     context.Context
	end       context.CancelFunc
	extend    sync.WaitGroup
}

// take acquires all keys, and extends them every third of the TTL.
func (h *holder) take(ctx context.Context, names []string) (err error) {
	h.ended, h.end = context.WithCancel(ctx)
	if keeper, ok := h.rival.(rival.Keeper); ok {
		h.stop, err = keeper.Keep(ctx, names, h.ttl/3)
		return err
	}
	h.held = make([]rival.Held, len(names))
	return h.each(func(i int) (err error) {
		h.held[i], err = h.rival.Try(ctx, names[i])
		if err == nil && h.kind.ByHand {
			h.extend.Go(func() { h.keep(h.held[i].(rival.Extender)) })
		}
		return err
	})
}

// each calls do for every key, from all acquirers.
func (h *holder) each(do func(i int) error) error {
	return atOnce(acquirers, func(a int) (err error) {
		for i := a; i < len(h.held) && err == nil; i += acquirers {
			err = do(i)
		}
		return err
	})
}

// keep extends one lock until the end.
func (h *holder) keep(e rival.Extender) {
	tick := time.NewTicker(h.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-h.ended.Done():
			return
		case <-tick.C:
		}
		if err := e.Extend(context.WithoutCancel(h.ended)); err != nil {
			h.lose(err)
			return
		}
	}
}

// losses ends the extensions, and returns how many locks were lost.
func (h *holder) losses() int {
	h.end()
	h.extend.Wait()
	for _, held := range h.held {
		if w, ok := held.(rival.Watcher); ok && w.Err() != nil {
			h.lose(w.Err())
		}
	}
	return h.lostCount
}

func (h *holder) lose(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost, h.lostCount = err, h.lostCount+1
}

// release releases everything, and fails if a lock was lost.
func (h *holder) release(ctx context.Context) error {
	if h.stop != nil {
		h.end()
		return h.stop()
	}
	if n := h.losses(); n > 0 {
		return fmt.Errorf("versus: %s lost %d keys that it held: %w", h.kind.Name, n, h.lost)
	}
	return h.each(func(i int) error { return h.held[i].Release(ctx) })
}
