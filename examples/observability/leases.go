package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

const invoicePrefix = "invoice/"

// writeInvoices tries to write the invoice of each second, which all replicas want and one gets.
// What goes wrong is in the metrics and the traces; the next one is another try.
func writeInvoices(ctx context.Context, q *redlock.Quorum) {
	for pause(ctx, between(300*time.Millisecond, 700*time.Millisecond)) {
		lease, err := q.TryAcquire(ctx, invoicePrefix+strconv.FormatInt(time.Now().Unix(), 10))
		if err == nil {
			hold(ctx, lease, between(100*time.Millisecond, 600*time.Millisecond))
		}
	}
}

// takeStock waits for its turn, again and again.
func takeStock(ctx context.Context, q *redlock.Quorum) {
	for pause(ctx, between(0, 500*time.Millisecond)) {
		lease, err := q.Acquire(ctx, "stock")
		if err == nil {
			hold(ctx, lease, between(50*time.Millisecond, 300*time.Millisecond))
		}
	}
}

// hold works under a lease until the work is done or the lease is over, whichever is first.
func hold(ctx context.Context, lease *redlock.Lease, work time.Duration) {
	pause(lease.Context(), work)
	// A lease that was lost cannot be released: it is over already, and reported.
	_ = lease.Release(context.WithoutCancel(ctx))
}

func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }
