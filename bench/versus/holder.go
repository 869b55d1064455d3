package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

// holderRole is a process that holds keys: one that can be killed, and whose CPU and memory are the
// rival's alone.
const holderRole = "holder"

// roles are those of this program's processes.
func roles() map[string]place.Role {
	return map[string]place.Role{holderRole: playHolder, ticksRole: playTicks}
}

// holderTask says what to hold. The keys are Key if there is one, and numbered otherwise.
type holderTask struct {
	Rival  string       `json:"rival"`
	Config rival.Config `json:"config"`
	Key    string       `json:"key"`
	Keys   int          `json:"keys"`
	// Measure is how long to hold before the holder reports and ends; 0 to hold until its parent
	// wants no more.
	Measure time.Duration `json:"measure"`
}

// holderReport is what holding has cost.
type holderReport struct {
	CPU        time.Duration `json:"cpu"`        // while they were held
	Heap       int64         `json:"heap"`       // growth since before the first, after a collection
	RSS        int64         `json:"rss"`        // growth since before the first
	Goroutines int           `json:"goroutines"` // while they were held
}

// acquirers is how many goroutines acquire what is to be held.
const acquirers = 64

func playHolder(spec json.RawMessage, parent *bufio.Reader, ready func(any) error) (any, error) {
	var task holderTask
	if err := json.Unmarshal(spec, &task); err != nil {
		return nil, fmt.Errorf("versus: holder: %w", err)
	}
	k, err := rival.Named(task.Rival)
	if err != nil {
		return nil, err
	}
	r, err := k.Open(task.Config)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h := &holder{kind: k, rival: r, ttl: task.Config.TTL}
	runtime.GC()
	before, err := stat.Used()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if err := h.take(ctx, task.names()); err != nil {
		return nil, err
	}
	report := &holderReport{}
	if err := ready(report); err != nil {
		return nil, err
	}
	if task.Measure == 0 {
		if _, err := io.Copy(io.Discard, parent); err != nil {
			return nil, err
		}
		return report, h.release(ctx)
	}
	held, err := stat.Used()
	if err != nil {
		return nil, err
	}
	time.Sleep(task.Measure)
	after, err := stat.Used()
	if err != nil {
		return nil, err
	}
	runtime.GC()
	settled, err := stat.Used()
	if err != nil {
		return nil, err
	}
	report.CPU = after.CPU - held.CPU
	report.Goroutines = after.Goroutines
	report.RSS = int64(after.RSS) - int64(before.RSS)
	report.Heap = int64(settled.Heap) - int64(before.Heap)
	return report, h.release(ctx)
}

func (t *holderTask) names() []string {
	if t.Key != "" {
		return []string{t.Key}
	}
	names := make([]string, t.Keys)
	for i := range names {
		names[i] = "held/" + strconv.Itoa(i)
	}
	return names
}

// holder keeps keys the way its rival keeps them.
type holder struct {
	kind  *rival.Kind
	rival rival.Rival
	ttl   time.Duration
	held  []rival.Held
	stop  func() error // of a rival.Keeper

	mu        sync.Mutex
	lost      error // guarded by mu; the last
	lostCount int   // guarded by mu
	ended     context.Context
	end       context.CancelFunc
	extend    sync.WaitGroup
}

// take acquires all, and extends them every third of the TTL.
func (h *holder) take(ctx context.Context, names []string) (err error) {
	h.ended, h.end = context.WithCancel(ctx)
	if keeper, ok := h.rival.(rival.Keeper); ok {
		h.stop, err = keeper.Keep(ctx, names, h.ttl/3)
		return err
	}
	h.held = make([]rival.Held, len(names))
	errs := make([]error, acquirers)
	var wg sync.WaitGroup
	for a := range acquirers {
		wg.Go(func() {
			for i := a; i < len(names) && errs[a] == nil; i += acquirers {
				h.held[i], errs[a] = h.rival.Try(ctx, names[i])
				if errs[a] == nil && h.kind.ByHand {
					h.extend.Go(func() { h.keep(h.held[i].(rival.Extender)) })
				}
			}
		})
	}
	wg.Wait()
	return firstOf(errs)
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

// losses ends the extending, and returns how many were lost.
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

// release gives everything back, and fails if anything was lost.
func (h *holder) release(ctx context.Context) error {
	if h.stop != nil {
		h.end()
		return h.stop()
	}
	if n := h.losses(); n > 0 {
		return fmt.Errorf("versus: %s lost %d keys that it held: %w", h.kind.Name, n, h.lost)
	}
	errs := make([]error, acquirers)
	var wg sync.WaitGroup
	for a := range acquirers {
		wg.Go(func() {
			for i := a; i < len(h.held) && errs[a] == nil; i += acquirers {
				errs[a] = h.held[i].Release(ctx)
			}
		})
	}
	wg.Wait()
	return firstOf(errs)
}
