package redlock

import (
	"context"
	"time"
)

// AcquireTracer is told of every TryAcquire and Acquire. It is what WithTracer takes; a value that
// also implements AttemptTracer, NodeTracer, ExtendTracer, ReleaseTracer, LostTracer or VoteTracer
// is told of those too (they are looked for once, when the Quorum is made).
//
// All tracer methods are called synchronously and must not block or panic: the node and extension
// methods run on the goroutines that serve every lease of the Quorum. They are called concurrently.
// Quorum.Close waits for such a goroutine, so it never returns there; nor does Release of a lease
// from its own TraceReleaseStart.
type AcquireTracer interface {
	// TraceAcquireStart is called before the first round. The context it returns reaches the rest
	// of the acquisition, and its values the lease's context.
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
	Duration     time.Duration // from TraceAcquireStart
	Attempts     int           // rounds that were sent
	Votes        int           // nodes that granted in the last round, when its outcome was certain
	Validity     time.Duration // validity left; zero without a lease
	FencingToken uint64        // zero without a lease
	Lease        *Lease        // nil without a lease
	Err          error

	// FreedBy tells how the key became free while Acquire waited for it. It is empty if Acquire did
	// not wait, if it got no lease, or if the key became free without an announcement.
	FreedBy FreedBy
	// Vacant is how long the key was free: from the release, as far as this process heard of it, or
	// from the expiry of the keys, until it was acquired. It is zero where FreedBy is empty.
	Vacant time.Duration
	// WaitedFor is the identity of the holder that Acquire met last, while it waited; empty if it
	// met none.
	WaitedFor string
}

// AttemptTracer is told of every round of an acquisition. TryAcquire has one round, or several when
// the vote is split. A waiting Acquire asks about once a TTL.
type AttemptTracer interface {
	// TraceAttemptStart is called before a round. The context that it returns reaches the
	// operations on the nodes, and its values the context of the lease that the round wins.
	TraceAttemptStart(ctx context.Context, data TraceAttemptStartData) context.Context
	// TraceAttemptEnd is called with the context that TraceAttemptStart returned, when the outcome
	// of the round is certain, as TraceAcquireEnd would be if the acquisition ended with it. Some
	// nodes may answer later.
	TraceAttemptEnd(ctx context.Context, data TraceAcquireEndData)
}

// TraceAttemptStartData describes a round.
type TraceAttemptStartData struct {
	Key     string
	TTL     time.Duration
	Nodes   int
	Quorum  int
	Wait    bool // of Acquire
	Attempt int  // 1 for the first
}

// FreedBy tells how a key that was waited for became free.
type FreedBy string

// How a key becomes free.
const (
	FreedByRelease FreedBy = "release" // its holder released it
	FreedByExpiry  FreedBy = "expiry"  // its holder died or lost it, and the keys expired
)

// NodeTracer is told of every operation on a node. Leases that are extended together share one
// operation on each node, whose context is that of none of them; ExtendTracer is told of each
// lease. Start and end may be called on different goroutines, and the end may come after the
// operation as a whole has ended: a round does not wait for stragglers.
type NodeTracer interface {
	TraceNodeStart(ctx context.Context, data TraceNodeStartData) context.Context
	TraceNodeEnd(ctx context.Context, data TraceNodeEndData)
}

// TraceNodeStartData describes an operation on one node.
type TraceNodeStartData struct {
	Op     Op
	Key    string // empty for an extension that leases share
	Node   string // host:port
	Leases int    // how many leases share an extension; 0 for an operation on one key
}

// TraceNodeEndData is how an operation on one node ended.
type TraceNodeEndData struct {
	Op   Op
	Key  string // as at the start
	Node string
	OK   bool  // the node did what was asked; false without Err when it refused (held by another, not ours)
	Err  error // a *NodeError, or nil

	Duration time.Duration // from TraceNodeStart, waiting in the node's queue included
}

// ExtendTracer is told of the extensions of a lease, of each once: when the deadline has moved, or
// when so many nodes have failed that it cannot. If the deadline moves all the same, it is told of
// that, too. It is also told of a node that has got a lost key back.
type ExtendTracer interface {
	TraceExtend(ctx context.Context, data TraceExtendData)
}

// TraceExtendData is how an extension went.
type TraceExtendData struct {
	Key      string
	Lease    *Lease
	Start    time.Time     // when the extension was due, by this process's clock
	Duration time.Duration // from Start until the outcome was certain
	Margin   time.Duration // validity that was left when the extension succeeded: how close it came
	Extended int           // nodes that extended the key
	Refilled int           // nodes that had lost the key and got it back
	Answers  []NodeAnswer  // of the nodes that had answered by then
	Err      error

	// Shared means that the tracer was told before of the same extension, for another lease: both
	// were extended together and became certain with the same answer. Leave these out to count or
	// measure extensions, and not leases.
	Shared bool
}

// NodeAnswer is a node's answer to an extension.
type NodeAnswer struct {
	Node     string        // host:port
	Duration time.Duration // from the question to the answer, waiting in the node's queue included
	OK       bool          // the node has the key for this lease
	Err      error         // a *NodeError, or nil
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
	Lost  bool          // the lease had been lost before, of which LostTracer was told
	Err   error
}

// LostTracer is told of every lease that ended without having been released, after its context was
// cancelled.
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

// VoteTracer is told when a node gains or loses its vote, when the reason why it does not vote or
// the end of its quarantine changes, and when a warning begins or ends. It is told of each node
// when the Quorum is made, and when it has been closed. A node that does not answer has no vote
// from the line in the log on that says so. It must not block, nor close the Quorum.
type VoteTracer interface {
	TraceVote(ctx context.Context, data TraceVoteData)
}

// TraceVoteData tells whether a node votes.
type TraceVoteData struct {
	Quorum *Quorum // whose node it is; several in one process may name the same server
	Node   string
	Votes  bool
	// Until is when a node that was restarted, or whose clock jumped, votes again; zero when it is
	// not quarantined.
	Until time.Time
	// Err is why it does not vote: a *ConditionError, ErrTimeout or another reason for which it
	// does not answer, or ErrClosed. Nil when it votes.
	Err error
	// Warning is the worst trouble that does not cost the node's vote, a *ConditionError. Nil if
	// there is none.
	Warning error
}

// tracers holds the interfaces that a tracer implements; the zero value traces nothing.
type tracers struct {
	acquire AcquireTracer
	attempt AttemptTracer
	node    NodeTracer
	extend  ExtendTracer
	release ReleaseTracer
	lost    LostTracer
	vote    VoteTracer
}

// Tracer returns the tracer of WithTracer; nil for none.
func (q *Quorum) Tracer() AcquireTracer {
	if q.none() {
		return nil
	}
	return q.cfg.tracers.acquire
}

func newTracers(t AcquireTracer) tracers {
	ts := tracers{acquire: t}
	ts.attempt, _ = t.(AttemptTracer)
	ts.node, _ = t.(NodeTracer)
	ts.extend, _ = t.(ExtendTracer)
	ts.release, _ = t.(ReleaseTracer)
	ts.lost, _ = t.(LostTracer)
	ts.vote, _ = t.(VoteTracer)
	return ts
}
