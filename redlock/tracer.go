package redlock

import (
	"context"
	"time"
)

// AcquireTracer is told of every TryAcquire and Acquire. It is what WithTracer takes; a value that also
// implements NodeTracer, ExtendTracer, ReleaseTracer or LostTracer is told of those too (they are looked for
// once, when the Quorum is made).
//
// All tracer methods are called synchronously and must not block or panic: the node and extension methods run on the
// goroutines that serve every lease of the Quorum. They are called concurrently.
type AcquireTracer interface {
	// TraceAcquireStart is called before the first round. The context it returns reaches the rest of the
	// acquisition, and its values the lease's context.
	TraceAcquireStart(ctx context.Context, data TraceAcquireStartData) context.Context
	// TraceAcquireEnd is called with the context that TraceAcquireStart returned.
	TraceAcquireEnd(ctx context.Context, data TraceAcquireEndData)
}

// TraceAcquireStartData describes an acquisition.
type TraceAcquireStartData struct {
	Key    string
	TTL    time.Duration
	Nodes  int
	Quorum int
	Wait   bool // Acquire rather than TryAcquire
}

// TraceAcquireEndData is how an acquisition ended.
type TraceAcquireEndData struct {
	Key          string
	Attempts     int           // rounds that were sent
	Votes        int           // nodes that granted in the last round, when its outcome was certain
	Validity     time.Duration // validity left; zero without a lease
	FencingToken uint64        // zero without a lease
	Lease        *Lease        // nil without a lease
	Err          error
}

// NodeTracer is told of every operation on a node. Start and end may be called on different goroutines, and
// the end may come after the operation as a whole has ended: a round does not wait for stragglers.
type NodeTracer interface {
	TraceNodeStart(ctx context.Context, data TraceNodeStartData) context.Context
	TraceNodeEnd(ctx context.Context, data TraceNodeEndData)
}

// TraceNodeStartData describes an operation on one node.
type TraceNodeStartData struct {
	Op   Op
	Key  string
	Node string // host:port
}

// TraceNodeEndData is how an operation on one node ended.
type TraceNodeEndData struct {
	Op   Op
	Key  string
	Node string
	OK   bool  // the node did what was asked; false without Err when it refused (held by another, not ours)
	Err  error // a *NodeError, or nil
}

// ExtendTracer is told of every extension of a lease after its outcome is certain.
type ExtendTracer interface {
	TraceExtend(ctx context.Context, data TraceExtendData)
}

// TraceExtendData is how an extension went.
type TraceExtendData struct {
	Key      string
	Start    time.Time
	Duration time.Duration
	Margin   time.Duration // validity that was left when the extension succeeded: how close it came
	Extended int           // nodes that extended the key
	Refilled int           // nodes that had lost the key and got it back
	Err      error
}

// ReleaseTracer is told of every release.
type ReleaseTracer interface {
	TraceReleaseStart(ctx context.Context, data TraceReleaseStartData) context.Context
	TraceReleaseEnd(ctx context.Context, data TraceReleaseEndData)
}

// TraceReleaseStartData describes a release.
type TraceReleaseStartData struct {
	Key   string
	Lease *Lease
}

// TraceReleaseEndData is how a release ended.
type TraceReleaseEndData struct {
	Key   string
	Lease *Lease
	Held  time.Duration // from the grant to the release
	Err   error
}

// LostTracer is told of every lease that ended without having been released, after its context was cancelled.
type LostTracer interface {
	TraceLost(ctx context.Context, data TraceLostData)
}

// TraceLostData describes a lost lease.
type TraceLostData struct {
	Key    string
	Lease  *Lease
	Held   time.Duration // from the grant to the loss
	Reason LostReason
	Err    error
}

// tracers holds the interfaces that a tracer implements; the zero value traces nothing.
type tracers struct {
	acquire AcquireTracer
	node    NodeTracer
	extend  ExtendTracer
	release ReleaseTracer
	lost    LostTracer
}

func newTracers(t AcquireTracer) tracers {
	ts := tracers{acquire: t}
	ts.node, _ = t.(NodeTracer)
	ts.extend, _ = t.(ExtendTracer)
	ts.release, _ = t.(ReleaseTracer)
	ts.lost, _ = t.(LostTracer)
	return ts
}
