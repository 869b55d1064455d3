package node

import (
	"context"
	"runtime"
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

func TestTimeLimitIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit timeLimit
		var first context.Context
		for i := range 3 {
			start := time.Now()
			ctx := limit.start(time.Second)
			if i == 0 {
				first = ctx
			}
			require.Same(t, first, ctx)
			at, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, start.Add(time.Second), at)
			require.Nil(t, ctx.Value("anything"))
			time.Sleep(time.Second - 1)
			synctest.Wait()
			require.False(t, isOver(t, ctx))
			limit.stop()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.False(t, isOver(t, first), "it runs on")

		ctx := limit.start(time.Second)
		start := time.Now()
		<-ctx.Done()
		require.Equal(t, time.Second, time.Since(start))
		require.True(t, isOver(t, ctx))
	})
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

// runs reports whether another goroutine that can run has run when the writer goes on.
func (g *gather) runs(c *clock.Clock) bool {
	ran := make(chan struct{})
	go close(ran)
	g.yield(c)
	select {
	case <-ran:
		return true
	default:
		<-ran
		return false
	}
}

// Those whom the last batch's answers have woken come first where they are several, and not after a
// batch of one. Where that took long it is not done again for a while.
func TestWriterGathers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // else the other goroutine runs anyway
	c := clock.New()
	count := func(g gather) (ran int) {
		for range 20 {
			if try := g; try.runs(c) { // each by itself: one that takes long has the next not done
				ran++
			}
		}
		return ran
	}
	require.Less(t, count(gather{}), 15, "it goes on, but for what the scheduler does by itself")
	require.Greater(t, count(gather{several: true, not: c.Now()}), 15)
	g := gather{several: true}
	g.busy(c.Now(), time.Hour)
	require.Less(t, count(g), 15)
	require.InDelta(t, yieldShare*time.Hour, g.not.Sub(c.Now()), float64(time.Minute))
}

// A batch of several has the next one gathered, and one of a single caller does not.
func TestBatchOfSeveralIsFollowedByAGatheredOne(t *testing.T) {
	n, c := voting(t)
	c.say = func(words []string) string {
		if !isScript(words) {
			return asServer
		}
		return ":1\r\n"
	}
	for _, callers := range []int{1, 3, 1} {
		for i := range callers {
			require.NoError(t, n.Send(&Request{Call: callOf(wire.Observe, string(rune('a'+i))), Expires: never}))
		}
		n.send()
		require.Equal(t, callers > 1, n.gather.several)
	}
}
