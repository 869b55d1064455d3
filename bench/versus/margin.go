package main

import (
	"context"
	"sync"

	"github.com/tenure-dev/tenure/bench/internal/stat"
	"github.com/tenure-dev/tenure/redlock"
)

// marginTracer collects how much validity was left when extensions succeeded. It is safe for
// concurrent use.
type marginTracer struct {
	mu      sync.Mutex
	on      bool      // guarded by mu
	margins []float64 // guarded by mu; ms
	failed  int       // guarded by mu
}

func (*marginTracer) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}

func (*marginTracer) TraceAcquireEnd(context.Context, redlock.TraceAcquireEndData) {}

// TraceExtend implements redlock.ExtendTracer.
func (t *marginTracer) TraceExtend(_ context.Context, data redlock.TraceExtendData) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.on:
	case data.Err != nil:
		t.failed++
	default:
		t.margins = append(t.margins, millis(data.Margin))
	}
}

func (t *marginTracer) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = true
}

// report ends the collection.
func (t *marginTracer) report(r *holderReport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on = false
	if r.Extensions, r.Failed = len(t.margins), t.failed; r.Extensions > 0 {
		r.MarginP1, r.MarginWorst = stat.Quantile(t.margins, 0.01), stat.Quantile(t.margins, 0)
	}
}
