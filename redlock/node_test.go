package redlock

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

func testNode() *node {
	cfg, err := newConfig(nil)
	if err != nil {
		panic(err)
	}
	q := &Quorum{cfg: cfg, need: 1, clock: clock.New()}
	n := &node{q: q, addr: "a:1", wake: make(chan struct{}, 1), closing: make(chan struct{}), busy: make(map[string]int)}
	q.nodes = []*node{n}
	return n
}

// Whatever sets or extends a key is dropped once the attempt has ended, wherever it waits: sent
// after the attempt's release it would bring the key back. Releases are sent.
func TestNothingButReleasesIsSentForAnEndedAttempt(t *testing.T) {
	n := testNode()
	at := &attempt{keys: &wire.Keys{Name: "k"}}
	later := n.q.clock.Now().Add(time.Hour)
	var batch []*request
	for _, op := range []wire.Op{wire.Acquire, wire.Agree, wire.Extend, wire.Release} {
		batch = append(batch, &request{call: at.call(op), attempt: at, round: newRound(Op(op.String()), 1, 1), expires: later})
	}
	require.Len(t, n.wanted(batch, true), 4)
	at.ended.Store(true)
	kept := n.wanted(batch, true)
	require.Len(t, kept, 1)
	require.Equal(t, OpRelease, kept[0].op())
	for _, r := range batch[:3] {
		o := r.round.outcome()
		require.Equal(t, wire.Failed, o.replies[0].Verdict)
		require.ErrorIs(t, o.replies[0].err, errAbandoned)
		require.Equal(t, "abandoned", ErrorType(o.replies[0].err))
	}
}

// An acquisition that was sent with others may have been granted although all of them failed: its
// attempt must take it back.
func TestAbandonedAfterItWasSentIsNotAbandonedBefore(t *testing.T) {
	n := testNode()
	at := &attempt{keys: &wire.Keys{Name: "k"}}
	at.ended.Store(true)
	r := &request{call: at.call(wire.Acquire), attempt: at, round: newRound(OpAcquire, 1, 1), expires: n.q.clock.Now().Add(time.Hour), alone: true}
	require.Empty(t, n.wanted([]*request{r}, false))
	err := r.round.outcome().replies[0].err
	require.NotErrorIs(t, err, errAbandoned)
	require.Equal(t, "abandoned", ErrorType(err))
}

func TestRequestsThatWaitedTooLongAreNotSent(t *testing.T) {
	n := testNode()
	r := &request{call: &wire.Call{Op: wire.Acquire, Keys: &wire.Keys{}}, attempt: &attempt{keys: &wire.Keys{}}, round: newRound(OpAcquire, 1, 1), expires: n.q.clock.Now() - 1}
	require.Empty(t, n.wanted([]*request{r}, true))
	require.ErrorIs(t, r.round.outcome().replies[0].err, ErrTimeout)
}

// Field: 118,000 goroutines leaked behind one frozen node. A full queue refuses, after throwing out
// what is too old to be sent, and keeps the releases it cannot take for later.
func TestQueueIsBounded(t *testing.T) {
	n := testNode()
	at := &attempt{keys: &wire.Keys{}, cfg: leaseConfig{ttl: DefaultTTL}}
	now := n.q.clock.Now()
	rd := newRound(OpAcquire, 1, 1)
	for range maxQueue {
		n.send(&request{call: at.call(wire.Acquire), attempt: at, round: rd, expires: now.Add(time.Hour)})
	}
	require.False(t, isDone(rd))

	refusedRound := newRound(OpAcquire, 1, 1)
	n.send(&request{call: at.call(wire.Acquire), attempt: at, round: refusedRound, expires: now.Add(time.Hour)})
	require.Equal(t, "overloaded", refusedRound.outcome().replies[0].err.ErrorType())
	n.send(&request{call: at.call(wire.Release), attempt: at, expires: now.Add(time.Hour)})
	require.Len(t, n.owed, 1)
	require.Len(t, n.queue, maxQueue)

	for _, r := range n.queue[:10] {
		r.expires = now - 1
	}
	n.send(&request{call: at.call(wire.Acquire), attempt: at, round: newRound(OpAcquire, 1, 1), expires: now.Add(time.Hour)})
	require.Len(t, n.queue, maxQueue-9)
}

// While batches are aloft a queue is looked through for what may fly, with all callers waiting, so
// it is not looked through to its end.
func TestQueueIsLookedThroughInPart(t *testing.T) {
	n := testNode()
	request := func(key string) *request {
		return &request{call: &wire.Call{Op: wire.Acquire, Keys: &wire.Keys{Lock: key}}, attempt: &attempt{keys: &wire.Keys{Lock: key}}}
	}
	n.busy["busy"] = 1
	for range maxLook - 1 {
		n.queue = append(n.queue, request("busy"))
	}
	n.queue = append(n.queue, request("near"), request("beyond"))
	free := n.takeFree()
	require.Len(t, free, 1)
	require.Equal(t, "near", free[0].attempt.keys.Lock)
	require.Equal(t, map[string]int{"busy": 1, "near": 1}, n.busy)
	require.Len(t, n.queue, maxLook, "the others stay, in their order")
	require.Equal(t, "beyond", n.queue[maxLook-1].attempt.keys.Lock)
	n.finish(&flight{taken: free, limit: started()})
	require.Equal(t, map[string]int{"busy": 1}, n.busy)
}

// started is a time limit that has begun, as that of each flight has.
func started() (t timeLimit) {
	t.start(time.Hour)
	return t
}

func TestClosedNodeRefuses(t *testing.T) {
	n := testNode()
	n.close()
	n.close()
	rd := newRound(OpAcquire, 1, 1)
	n.send(&request{call: &wire.Call{Op: wire.Acquire, Keys: &wire.Keys{}}, attempt: &attempt{keys: &wire.Keys{}}, round: rd, expires: 1 << 60})
	require.ErrorIs(t, rd.outcome().replies[0].err, ErrClosed)
	n.send(&request{call: &wire.Call{Op: wire.Release, Keys: &wire.Keys{}}, attempt: &attempt{keys: &wire.Keys{}}, expires: 1 << 60})
	require.Empty(t, n.owed, "what comes after Close is not sent")
}

// What is queued behind requests that are not sent is sent, whatever became of the exchange before.
func TestOnlyAnExchangeThatFailedFailsTheRest(t *testing.T) {
	n := testNode()
	refused := errors.New("connection refused")
	dials := 0
	n.connect = func() (valkey.Client, error) { dials++; return nil, refused }
	n.trouble.Store(n.failure("exchange", errors.New("of an hour ago")))
	at := &attempt{keys: &wire.Keys{}, cfg: leaseConfig{ttl: DefaultTTL}}
	ended := &attempt{keys: &wire.Keys{}}
	ended.ended.Store(true)
	later := n.q.clock.Now().Add(time.Hour)
	for range maxBatch {
		n.send(&request{call: ended.call(wire.Extend), attempt: ended, expires: later})
	}
	rd := newRound(OpExtend, 1, 1)
	for range 2 * maxBatch {
		n.send(&request{call: at.call(wire.Extend), attempt: at, round: rd, expires: later})
	}
	n.sendAll()
	require.ErrorIs(t, rd.outcome().replies[0].err, refused)
	require.Equal(t, 1, dials, "the rest would wait for the same node in vain")
}
