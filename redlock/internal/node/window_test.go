package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// far is a window of a node that is far away.
func far() window {
	return window{busy: make(map[string]int), trip: roundTrip{least: time.Second, before: time.Second, until: 1}}
}

// While batches are in flight the others wait while it is looked for what may follow, so they are
// not looked through to their end.
func TestRequestsAreLookedThroughInPart(t *testing.T) {
	w := far()
	w.busy["busy"] = 1
	request := func(key string) *Request { return &Request{Call: callOf(wire.Acquire, key)} }
	var pending []*Request
	for range maxLook - 1 {
		pending = append(pending, request("busy"))
	}
	pending = append(pending, request("free"), request("beyond"))
	b := w.take(&pending)
	require.Len(t, b.requests, 1)
	require.Equal(t, "free", b.requests[0].Call.Keys.Lock)
	require.Equal(t, map[string]int{"busy": 1, "free": 1}, w.busy)
	require.Len(t, pending, maxLook, "the others stay, in their order")
	require.Equal(t, "beyond", pending[maxLook-1].Call.Keys.Lock)
	b.limit.start(time.Hour)
	w.finish(b)
	require.Equal(t, map[string]int{"busy": 1}, w.busy)
}

// Requests for one key follow each other, and a batch has a bound.
func TestBatchesAreOfDifferentKeys(t *testing.T) {
	w := far()
	var pending []*Request
	for range 2 {
		for i := range maxBatch + 1 {
			pending = append(pending, &Request{Call: callOf(wire.Acquire, string(rune('a'+i)))})
		}
	}
	first := w.take(&pending)
	require.Len(t, first.requests, maxBatch)
	second := w.take(&pending)
	require.Len(t, second.requests, 2, "the one that had no room, and its like")
	require.Nil(t, w.take(&pending), "all keys are in flight")
	first.limit.start(time.Hour)
	w.finish(first)
	require.Len(t, w.take(&pending).requests, maxBatch)
	require.Empty(t, pending)
}

// A near node has one batch in flight.
func TestWindow(t *testing.T) {
	w := far()
	require.Equal(t, maxInFlight, w.size())
	w.trip = roundTrip{}
	require.Equal(t, 1, w.size())
	w.inFlight = []*batch{{}}
	require.Nil(t, w.take(&[]*Request{{Call: callOf(wire.Acquire, "key")}}))
}

// An extension of many leases works as long as they take the server, which makes no node far.
func TestRoundTripOfManyLeases(t *testing.T) {
	for leases, batches := range map[int]int{1: 3, wire.MaxGroup: 1} {
		var trip roundTrip
		trip.observe(nearTrip+tripWork*wire.MaxGroup-1, clock.Instant(1), leases)
		require.Equal(t, batches, trip.batches(), "%d leases", leases)
	}
}

// closable is a client that can be closed, and nothing else.
type closable struct {
	valkey.Client
	closed bool
}

func (c *closable) Close() { c.closed = true }

// valkey-go leaves a connection open that is made while its client is being closed. A batch may be
// about to make one, also when it is back, because its requests are sent once more.
func TestClientIsNotClosedUnderItsBatches(t *testing.T) {
	n, client := New(config(newServer("a"))), &closable{}
	n.client.Store(new(valkey.Client(client)))
	n.window.inFlight = []*batch{{client: client}, {client: client}}
	n.leave(client)
	require.Nil(t, n.client.Load(), "nothing else uses it")
	for len(n.window.inFlight) > 0 {
		n.part()
		require.Equal(t, []valkey.Client{client}, n.parting, "%d batches have it", len(n.window.inFlight))
		n.window.pop()
	}
	n.part()
	require.Empty(t, n.parting)
	n.work.Wait()
	require.True(t, client.closed)
}

// The requests of a batch that is back may be sent once more over the next client, and that may be
// given up too, while batches still have the first one.
func TestTwoClientsAreGivenUp(t *testing.T) {
	n, first, second := New(config(newServer("a"))), &closable{}, &closable{}
	n.window.inFlight = []*batch{{client: first}}
	for _, client := range []*closable{first, second} {
		n.client.Store(new(valkey.Client(client)))
		n.leave(client)
	}
	n.part()
	require.Equal(t, []valkey.Client{first}, n.parting)
	n.window.pop()
	n.part()
	require.Empty(t, n.parting)
	n.work.Wait()
	require.True(t, first.closed)
	require.True(t, second.closed)
}
