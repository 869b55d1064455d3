package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A connection that hangs while the server is looked at delays no extension and no release. What
// needs the look waits for it, and is refused when it comes to nothing.
func TestLookThatHangsDelaysNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		s.hangs = true
		n := started(t, s)
		var a answers
		start := time.Now()
		agree := a.send(t, n, wire.Agree, "key")
		extend, release := a.send(t, n, wire.Extend, "key"), a.send(t, n, wire.Release, "key")
		synctest.Wait()
		requireOne(t, &a, extend, wire.Failed, "an extension, which does not count yet")
		s.set(func() { require.Equal(t, 2, s.ran) })
		requireOne(t, &a, release, wire.OK, "a release")
		require.Zero(t, time.Since(start))
		require.Empty(t, a.of(agree), "it waits")
		time.Sleep(timeout)
		synctest.Wait()
		require.ErrorIs(t, requireOne(t, &a, agree, wire.Failed, "the look has failed").Err, ErrTimeout)

		s.set(func() { s.hangs = false })
		time.Sleep(MaxPause)
		synctest.Wait()
		require.NoError(t, n.Status().Reason())
		agree = a.send(t, n, wire.Agree, "key")
		synctest.Wait()
		requireOne(t, &a, agree, wire.OK, "it votes")
	})
}

// Each request that was taken is answered once, also when the node is closed while it waits for a
// look, and nothing is answered that was not taken.
func TestEachRequestIsAnsweredOnce(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprint("hangs: ", hangs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer("a")
				s.hangs = hangs
				n := New(config(s))
				var a answers
				var all []*Request
				ops := []wire.Op{wire.Agree, wire.Extend, wire.Release, wire.Leave, wire.Info}
				for i := range 4 * maxBatch {
					all = append(all, a.send(t, n, ops[i%len(ops)], fmt.Sprint("key", i%100)))
				}
				go n.Run()
				synctest.Wait()
				n.Close()
				n.Close()
				refused := &Request{Call: callOf(wire.Extend, "key"), To: &a, Expires: 1 << 60}
				n.Send(refused)
				n.Wait()
				for _, r := range all {
					want := wire.OK
					if r.Call.Op == wire.Extend || hangs && (r.Call.Op == wire.Agree || r.Call.Op == wire.Info) { // before the gate has opened
						want = wire.Failed
					}
					requireOne(t, &a, r, want, r.Call.Op.String())
				}
				require.Equal(t, Answer{Answer: failed(nil).Answer, Err: ErrClosed, Unsent: true}, requireOne(t, &a, refused, wire.Failed, "closed"))
			})
		})
	}
}

// A queue that is full refuses, but for the releases, which are sent later. It does not look
// through what it has: that would cost each Send as much as all that waits, with everybody else
// waiting.
func TestQueueIsBounded(t *testing.T) {
	n := New(config(newServer("a")))
	now := n.cfg.Clock.Now()
	var a answers
	for range maxQueue {
		require.Empty(t, a.of(a.send(t, n, wire.Acquire, "key")))
	}
	for _, op := range []wire.Op{wire.Acquire, wire.Release} {
		r := a.send(t, n, op, "key")
		require.ErrorIs(t, requireOne(t, &a, r, wire.Failed, op.String()).Err, ErrOverloaded)
		for _, again := range n.retries.all {
			require.NotSame(t, r, again, "it is the sender's again")
		}
	}
	require.Len(t, n.retries.all, 1)
	require.Len(t, n.queue.waiting, maxQueue)
	for _, r := range n.queue.waiting[:10] {
		r.Expires = now - 1
	}
	requireOne(t, &a, a.send(t, n, wire.Acquire, "key"), wire.Failed, "its queue is not looked through")

	n.collect()
	require.Len(t, n.pending, maxQueue)
	require.Empty(t, a.of(a.send(t, n, wire.Acquire, "key")))
	n.collect()
	require.Len(t, n.pending, maxQueue, "what the writer has is bounded, too")
	require.Len(t, n.queue.waiting, 1)
	n.pending = n.pending[1:]
	n.collect()
	require.Len(t, n.pending, maxQueue)
	require.Empty(t, n.queue.waiting)
}

// Whatever sets or extends a key is dropped once the attempt has ended, wherever it waits: sent
// after the attempt's release it would bring the key back. Releases are sent.
func TestNothingButReleasesIsSentForAnEndedAttempt(t *testing.T) {
	n := New(config(newServer("a")))
	later := n.cfg.Clock.Now().Add(time.Hour)
	var a answers
	var ended atomic.Bool
	var batch []*Request
	for _, op := range []wire.Op{wire.Acquire, wire.Agree, wire.Extend, wire.Release, wire.Leave} {
		batch = append(batch, &Request{Call: callOf(op, "k"), To: &a, Expires: later, Ended: &ended})
	}
	require.Len(t, n.wanted(batch), 5)
	ended.Store(true)
	require.Equal(t, batch[3:], n.wanted(batch))
	for _, r := range batch[:3] {
		require.ErrorIs(t, requireOne(t, &a, r, wire.Failed, "dropped").Err, ErrAbandoned)
	}

	// A waiter's acquisition leaves a join behind: as it is it would be granted, and nobody would
	// take the grant back.
	waits := &Request{Call: callOf(wire.Acquire, "k"), To: &a, Expires: later, Ended: &ended}
	waits.Call.Member = wire.NewMember(1, wire.NewProcess(), "waiter")
	joins := n.wanted([]*Request{waits})
	require.Len(t, joins, 1)
	require.Equal(t, []any{wire.Join, waits.Call.Member}, []any{joins[0].Call.Op, joins[0].Call.Member})
	require.Equal(t, wire.Acquire, waits.Call.Op, "others may still read it")
	requireOne(t, &a, waits, wire.Failed, "dropped")
}

// An acquisition that was sent with others may have been granted although all of them failed: its
// attempt must take it back.
func TestAbandonedAfterItWasSentIsNotAbandonedBefore(t *testing.T) {
	n := New(config(newServer("a")))
	var a answers
	var ended atomic.Bool
	ended.Store(true)
	r := &Request{Call: callOf(wire.Acquire, "k"), To: &a, Expires: n.cfg.Clock.Now().Add(time.Hour), Ended: &ended, alone: true}
	require.Empty(t, n.wanted([]*Request{r}))
	require.False(t, requireOne(t, &a, r, wire.Failed, "dropped").Unsent)
	fresh := &Request{Call: r.Call, To: &a, Expires: r.Expires, Ended: &ended}
	require.Empty(t, n.wanted([]*Request{fresh}))
	require.True(t, requireOne(t, &a, fresh, wire.Failed, "dropped").Unsent)
}

func TestRequestsThatWaitedTooLongAreNotSent(t *testing.T) {
	n := New(config(newServer("a")))
	var a answers
	r := &Request{Call: callOf(wire.Acquire, "k"), To: &a, Expires: n.cfg.Clock.Now() - 1}
	require.Empty(t, n.wanted([]*Request{r}))
	require.ErrorIs(t, requireOne(t, &a, r, wire.Failed, "dropped").Err, ErrTimeout)
}

// What is queued behind requests that are not sent is sent, whatever became of the exchange before;
// where the node cannot be reached, nothing else waits for it.
func TestOnlyAnExchangeThatFailedFailsTheRest(t *testing.T) {
	cfg := config(newServer("a"))
	dials, refused := 0, errors.New("connection refused")
	cfg.Connect = func(context.Context, func()) (valkey.Client, error) { dials++; return nil, refused }
	n := New(cfg)
	var a answers
	var ended atomic.Bool
	ended.Store(true)
	later := n.cfg.Clock.Now().Add(time.Hour)
	for range maxBatch {
		n.Send(&Request{Call: callOf(wire.Extend, "k"), Expires: later, Ended: &ended})
	}
	var all []*Request
	for range 2 * maxBatch {
		all = append(all, a.send(t, n, wire.Extend, "k"))
	}
	n.send()
	for _, r := range all {
		require.ErrorIs(t, requireOne(t, &a, r, wire.Failed, "refused").Err, refused)
	}
	require.Equal(t, 1, dials, "the rest would wait for the same node in vain")
}

// What a look has found of a server counts for the gate as it was when the look began. It says
// nothing of the process that was vouched for meanwhile.
func TestLookOfAnotherEpochIsDropped(t *testing.T) {
	n := New(config(newServer("a")))
	info := func(runID string) *wire.ServerInfo {
		return &wire.ServerInfo{Version: "7.2.4", RunID: strings.Repeat(runID, wire.RunIDLength), Role: "master", Uptime: time.Hour}
	}
	n.gate.follow(info("a"))
	n.gate.admit(nil, nil)
	old := newLook(n.gate.epoch) // a look at process a, which is slow
	old.end()
	old.info = info("a")
	n.look = old
	n.gate.shut()
	n.gate.follow(info("b"))
	n.gate.admit(nil, nil)
	n.heed(old)
	require.Nil(t, n.look)
	require.False(t, <-old.goesOn, "it is over")
	require.NoError(t, n.Status().Reason(), "process b goes on to vote")
	require.Equal(t, strings.Repeat("b", wire.RunIDLength), n.gate.process.id)

	// And an old look whose trial went well opens no gate that was closed meanwhile.
	n.gate.shut()
	late := newLook(n.gate.epoch)
	late.end()
	late.tried, late.trial = true, &trial{}
	n.look = late
	n.gate.close(&wire.Fault{Condition: wire.ClockJumped}, n.cfg.Clock.Now().Add(quarantine))
	n.heed(late)
	require.Equal(t, wire.ClockJumped, n.Status().Fault.Condition)
}

// option has a server dialed, and counts how often.
func option(dials *int, dial dialFunc) valkey.ClientOption {
	o := optionOf(func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		*dials++
		return dial(ctx, addr, dialer, config)
	})
	o.ConnWriteTimeout = time.Hour
	return o
}

// A client has one connection, which ends with it.
func TestOneConnectionEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dials := newServer("a"), 0
		o := option(&dials, s.dial)
		ctx, cancel := context.WithCancel(t.Context())
		var changes int
		client, err := NewClient(ctx, o, func() { changes++ })
		require.NoError(t, err)
		require.NoError(t, client.Do(t.Context(), client.B().Ping().Build()).Error())
		require.Equal(t, 1, dials)
		require.Equal(t, 1, changes, "before it is there")
		cancel()
		synctest.Wait()
		require.Error(t, client.Do(t.Context(), client.B().Ping().Build()).Error(), "it ends with the context")
		client.Close()

		dials = 0
		ctx, cancel = context.WithCancel(t.Context())
		lasting := NewLasting(ctx, o)
		require.NoError(t, lasting.Do(t.Context(), lasting.B().Ping().Build()).Error())
		require.Equal(t, 1, dials)
		broken := lasting.Broken()
		lasting.Cut()
		<-broken
		synctest.Wait()
		require.NoError(t, lasting.Do(t.Context(), lasting.B().Ping().Build()).Error())
		require.Equal(t, 2, dials)
		require.NotEqual(t, broken, lasting.Broken())
		cancel()
		synctest.Wait()
		require.Error(t, lasting.Do(t.Context(), lasting.B().Ping().Build()).Error(), "it ends with the context, too")
		lasting.Close()
	})
}

// What is on its way is not waited for when the context ends: a dial, nor a server that says
// nothing. Nor does the end of a client wait for its server.
func TestConnectionThatDoesNotCome(t *testing.T) {
	for name, dial := range map[string]dialFunc{
		"dial": func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"server": func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			near, _ := net.Pipe()
			return near, nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var dials int
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			client, err := NewClient(ctx, option(&dials, dial), nil)
			require.Error(t, err, name)
			require.Nil(t, client)
			lasting := NewLasting(ctx, option(&dials, dial))
			lasting.Cut()
			require.Error(t, lasting.Do(ctx, lasting.B().Ping().Build()).Error())
			lasting.Close()
			require.LessOrEqual(t, time.Since(start), time.Second)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, dials := newServer("a"), 0
		client, err := NewClient(t.Context(), option(&dials, s.dial), nil)
		require.NoError(t, err)
		s.set(func() { s.slow = time.Minute })
		start := time.Now()
		client.Close()
		require.Zero(t, time.Since(start))
	})
}

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

// Batches in flight over a connection that is given up may still be answered.
func TestClientIsNotClosedUnderItsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, client := New(config(newServer("a"))), &closable{}
		n.client.Store(new(valkey.Client(client)))
		n.window.inFlight = []*batch{{back: make(chan struct{})}, {back: make(chan struct{})}}
		n.leave(client)
		require.Nil(t, n.client.Load(), "nothing else uses it")
		for len(n.window.inFlight) > 0 {
			synctest.Wait()
			require.False(t, client.closed)
			close(n.window.pop().back)
		}
		synctest.Wait()
		require.True(t, client.closed)
	})
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

// A request that is to be sent alone shares a command with none of those before or after it.
func TestGroupsAroundOneThatIsAlone(t *testing.T) {
	request := func(key string, alone bool) *Request {
		return &Request{Call: callOf(wire.Acquire, key), alone: alone}
	}
	n, _ := voting(t)
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
		b := &batch{client: *n.client.Load()}
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
		again := s.take(never)[0]
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
	require.Empty(t, s.take(never), "its key has expired")
}
