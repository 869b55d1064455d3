package node

import (
	"context"
	"testing"
	"testing/synctest"
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

// isOver reports whether the context's channel says so, and wants its error to say the same.
func isOver(t *testing.T, ctx context.Context) bool {
	t.Helper()
	select {
	case <-ctx.Done():
		require.Equal(t, context.DeadlineExceeded, ctx.Err())
		require.True(t, wire.IsTimeout(ctx.Err()))
		return true
	default:
		require.NoError(t, ctx.Err())
		return false
	}
}

// What has run out may still be in somebody's hands, for whom it must not begin anew.
func TestTimeLimitThatRanOutIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit timeLimit
		old := limit.start(time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, isOver(t, old))
		limit.stop()

		ctx := limit.start(time.Second)
		require.NotSame(t, old, ctx)
		require.False(t, isOver(t, ctx))
		require.True(t, isOver(t, old))
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		<-derived.Done()
		require.True(t, isOver(t, ctx))
		require.Equal(t, context.DeadlineExceeded, derived.Err())
		limit.stop()
	})
}

// The least of the last seconds counts: a node that is slow for a moment is not far, and one that
// has moved away is, after two spans of time.
func TestRoundTripOfTheLastSeconds(t *testing.T) {
	var trip roundTrip
	at := clock.Instant(1)
	observe := func(took time.Duration) int {
		trip.observe(took, at, 0)
		return trip.batches()
	}
	require.Equal(t, 1, trip.batches(), "nothing is known")
	require.Equal(t, maxInFlight, observe(time.Second))
	require.Equal(t, 2, observe(nearTrip))
	require.Equal(t, 2, observe(time.Second))
	at = at.Add(tripSpan)
	require.Equal(t, 2, observe(time.Second), "the span before counts")
	at = at.Add(tripSpan)
	require.Equal(t, maxInFlight, observe(time.Second))
	require.Equal(t, 1, observe(nearTrip-1))
}

// A request that is to be sent alone shares a command with none of those before or after it.
func TestGroupsAroundOneThatIsAlone(t *testing.T) {
	request := func(key string, alone bool) *Request {
		return &Request{Call: callOf(wire.Acquire, key), alone: alone}
	}
	n, c := voting(t)
	for _, test := range []struct {
		alone []bool
		sizes []int
	}{
		{[]bool{false, false, false}, []int{3}},
		{[]bool{false, true, false}, []int{1, 1, 1}},
		{[]bool{true, false, false}, []int{1, 2}},
		{[]bool{false, false, true}, []int{2, 1}},
	} {
		var requests []*Request
		for i, alone := range test.alone {
			requests = append(requests, request(string(rune('a'+i)), alone))
		}
		b := &batch{client: c}
		n.encode(b, requests)
		require.Equal(t, test.sizes, b.sizes, "%v", test.alone)
		require.Len(t, b.commands, len(test.sizes))
		require.Equal(t, len(requests), b.leases)
	}
}

// release is one of a lease with that TTL, which expires with the key.
func release(ttl time.Duration, now clock.Instant) *Request {
	return &Request{Call: callOf(wire.Release, "key"), To: &answers{}, Expires: now.Add(ttl), TTL: ttl}
}

// A failed release is the retries' own: it has been answered. While a node is silent its key does
// not expire.
func TestReleaseThatIsKept(t *testing.T) {
	const now = clock.Instant(1 << 40)
	var s retries
	require.Equal(t, never, s.due())
	for _, silent := range []bool{false, true} {
		r := release(time.Minute, now)
		r.Expires = now + 1
		s.add(r, silent, now)
		again := s.take()[0]
		require.NotSame(t, r, again)
		require.NotSame(t, r.Call, again.Call)
		require.Equal(t, *r.Call, *again.Call)
		require.Nil(t, again.To)
		require.NotNil(t, r.To)
		want := now + 1
		if silent {
			want = now.Add(66 * time.Second)
		}
		require.Equal(t, want, again.Expires)
		require.Equal(t, never, s.due(), "none is left")
	}
	s.add(release(time.Minute, now.Add(-time.Minute)), false, now)
	require.Empty(t, s.take(), "its key has expired")
}
