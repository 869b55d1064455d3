package redlock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// events is a tracer of everything, of which a function hears: as what it is called, less Trace,
// and what it is told. The context that it returns counts where a method returns one.
type events func(ctx context.Context, kind string, data any) context.Context

func (e events) TraceAcquireStart(ctx context.Context, data redlock.TraceAcquireStartData) context.Context {
	return e(ctx, "AcquireStart", data)
}

func (e events) TraceAcquireEnd(ctx context.Context, data redlock.TraceAcquireEndData) {
	e(ctx, "AcquireEnd", data)
}

func (e events) TraceAttemptStart(ctx context.Context, data redlock.TraceAttemptStartData) context.Context {
	return e(ctx, "AttemptStart", data)
}

func (e events) TraceAttemptEnd(ctx context.Context, data redlock.TraceAcquireEndData) {
	e(ctx, "AttemptEnd", data)
}

func (e events) TraceNodeStart(ctx context.Context, data redlock.TraceNodeStartData) context.Context {
	return e(ctx, "NodeStart", data)
}

func (e events) TraceNodeEnd(ctx context.Context, data redlock.TraceNodeEndData) {
	e(ctx, "NodeEnd", data)
}

func (e events) TraceExtend(ctx context.Context, data redlock.TraceExtendData) {
	e(ctx, "Extend", data)
}

func (e events) TraceReleaseStart(ctx context.Context, data redlock.TraceReleaseStartData) context.Context {
	return e(ctx, "ReleaseStart", data)
}

func (e events) TraceReleaseEnd(ctx context.Context, data redlock.TraceReleaseEndData) {
	e(ctx, "ReleaseEnd", data)
}

func (e events) TraceLost(ctx context.Context, data redlock.TraceLostData) { e(ctx, "Lost", data) }

func (e events) TraceVote(ctx context.Context, data redlock.TraceVoteData) { e(ctx, "Vote", data) }

// told is the option of a tracer that has one kind of data told.
func told[D any](tell func(D)) redlock.Option { return redlock.WithTracer(eventsOf(tell)) }

func eventsOf[D any](tell func(D)) events {
	return func(ctx context.Context, _ string, data any) context.Context {
		if data, ok := data.(D); ok {
			tell(data)
		}
		return ctx
	}
}

// ending is told with how acquisitions end, and of nothing while they ask: so none of them is out
// of its line, see lines.
func ending(tell func(redlock.TraceAcquireEndData)) redlock.Option {
	return redlock.WithTracer(struct{ redlock.AcquireTracer }{eventsOf(tell)})
}

// recorder writes down what it is told.
type recorder struct {
	mu    sync.Mutex
	lines []string
	open  int // operations that were started and not ended
}

type parentKey struct{}

func (r *recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

func (r *recorder) count(d int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open += d
}

// hear is told of everything.
func (r *recorder) hear(ctx context.Context, kind string, data any) context.Context {
	parent := ctx.Value(parentKey{})
	if strings.HasSuffix(kind, "Start") {
		r.count(1)
	} else if strings.HasSuffix(kind, "End") {
		r.count(-1)
	}
	switch data := data.(type) {
	case redlock.TraceAcquireStartData:
		r.add("acquire %s ttl=%v %d/%d wait=%v", data.Key, data.TTL, data.Quorum, data.Nodes, data.Wait)
		return context.WithValue(ctx, parentKey{}, "acquire")
	case redlock.TraceAttemptStartData:
		r.add("attempt %d of %s ttl=%v %d/%d wait=%v", data.Attempt, data.Key, data.TTL, data.Quorum, data.Nodes, data.Wait)
		return context.WithValue(ctx, parentKey{}, fmt.Sprintf("attempt %d", data.Attempt))
	case redlock.TraceAcquireEndData:
		if kind == "AttemptEnd" {
			r.add("%v: %q attempts=%d lease=%v after %v waited for %q freed by %q", parent, redlock.ErrorType(data.Err), data.Attempts,
				data.Lease != nil, data.Duration, data.WaitedFor, data.FreedBy)
			break
		}
		r.add("acquired by %v: %q attempts=%d votes=%d lease=%v token=%v valid=%v", parent,
			redlock.ErrorType(data.Err), data.Attempts, data.Votes, data.Lease != nil, data.FencingToken != 0, data.Validity > 0)
	case redlock.TraceNodeStartData:
		return context.WithValue(ctx, parentKey{}, fmt.Sprint(parent, ">", data.Op))
	case redlock.TraceNodeEndData:
		r.add("%v on %s: ok=%v %q after %v", parent, data.Node, data.OK, redlock.ErrorType(data.Err), data.Duration)
	case redlock.TraceExtendData:
		r.add("extended %s: %q extended=%d refilled=%d margin=%v", data.Key, redlock.ErrorType(data.Err), data.Extended, data.Refilled,
			data.Margin.Round(100*time.Millisecond))
		for _, a := range data.Answers {
			r.add("%s says: ok=%v %q after %v", a.Node, a.OK, redlock.ErrorType(a.Err), a.Duration)
		}
	case redlock.TraceReleaseStartData:
		return context.WithValue(ctx, parentKey{}, "release")
	case redlock.TraceReleaseEndData:
		r.add("released by %v after %v: %q lost=%v", parent, data.Held, redlock.ErrorType(data.Err), data.Lost)
	case redlock.TraceLostData:
		r.add("lost after %v: %s", data.Held, data.Reason)
	}
	return ctx
}

func TestTracerIsToldEverything(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		rec := new(recorder)
		q := open(t, fleet, redlock.WithTracer(events(rec.hear)))
		l := acquire(t, q, redlock.WithoutAutoExtend())
		synctest.Wait()
		lines := rec.take()
		require.Equal(t, "acquire key ttl=4s 2/3 wait=false", lines[0])
		require.Regexp(t, `acquired by acquire: "" attempts=1 votes=[23] lease=true token=true valid=true`, strings.Join(lines, "\n"))
		for i := range 3 {
			require.Contains(t, lines, fmt.Sprintf(`attempt 1>acquire on node-%d.pipe:6379: ok=true "" after 0s`, i+1))
		}

		_, err := open(t, fleet, redlock.WithTracer(events(rec.hear))).TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld)
		synctest.Wait()
		lines = rec.take()
		require.Contains(t, lines, `acquired by acquire: "held" attempts=1 votes=0 lease=false token=false valid=false`)
		require.Contains(t, lines, `attempt 1>acquire on node-1.pipe:6379: ok=false "" after 0s`)

		time.Sleep(time.Second)
		require.NoError(t, l.Extend(t.Context()))
		synctest.Wait()
		require.Contains(t, rec.take(), `extended key: "" extended=2 refilled=0 margin=3s`)

		freeze(t, fleet, 0, 1)
		require.Error(t, l.Extend(t.Context()))
		lines = rec.take()
		require.Contains(t, lines, `extended key: "timeout" extended=1 refilled=0 margin=3.8s`)
		require.Contains(t, lines, `node-3.pipe:6379 says: ok=true "" after 0s`)
		require.NotContains(t, strings.Join(lines, "\n"), "node-1.pipe:6379 says", "it has not answered")
		thaw(t, fleet, 0, 1)

		finish(t, l.Release)
		lines = rec.take()
		require.Contains(t, lines, `released by release after 1.2s: "" lost=false`)
		require.Contains(t, lines, `release>release on node-3.pipe:6379: ok=true "" after 0s`)

		lost := acquire(t, q, redlock.WithoutAutoExtend())
		<-lost.Context().Done()
		synctest.Wait()
		require.Contains(t, rec.take(), fmt.Sprintf("lost after %v: deadline", validity))
		require.ErrorIs(t, lost.Release(t.Context()), redlock.ErrLost)
		require.Contains(t, rec.take(), fmt.Sprintf("released by release after %v: %q lost=true", validity, "lost_deadline"))
		synctest.Wait()
		require.Zero(t, rec.open, "every start has its end")
	})
}

// Each round of a waiter is told of by itself, and the last says whom it waited for.
func TestTracerIsToldOfEachAttempt(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		rec := new(recorder)
		holder, err := open(t, fleet, redlock.WithIdentity("holder")).TryAcquire(t.Context(), "key")
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { _ = holder.Release(context.Background()) })
		l, err := open(t, fleet, redlock.WithTracer(events(rec.hear))).Acquire(t.Context(), "key")
		require.NoError(t, err)
		last, _ := l.Context().Value(parentKey{}).(string) // it asks twice when it joins the queue
		require.NotEqual(t, "attempt 1", last)
		synctest.Wait()
		lines := rec.take()
		for _, want := range []string{
			"attempt 1 of key ttl=4s 2/3 wait=true", `attempt 1: "held" attempts=1 lease=false after 0s waited for "" freed by ""`, "attempt 1>acquire",
			last + " of key ttl=4s 2/3 wait=true", last + `: "" attempts=` + last[len("attempt "):] + ` lease=true after 0s waited for "holder" freed by "release"`,
			last + ">acquire",
		} {
			require.Contains(t, strings.Join(lines, "\n"), want)
		}
		require.Zero(t, rec.open, "every start has its end")
	})
}

func TestTracersValuesReachTheLeasesContext(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := open(t, fleet, redlock.WithTracer(events(new(recorder).hear))).TryAcquire(ctx, "key")
		require.NoError(t, err)
		require.Equal(t, "attempt 1", l.Context().Value(parentKey{}))
		cancel()
		require.NoError(t, l.Err(), "the lease outlives the call's context")
		require.NoError(t, l.Context().Err())
	})
}

// A request that waits for a frozen node gets its end too, even if it is never sent.
func TestTracerHearsOfRequestsThatWereNeverSent(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		rec := new(recorder)
		q := open(t, fleet, redlock.WithTracer(events(rec.hear)))
		freeze(t, fleet, 0)
		for range 5 {
			l := acquire(t, q)
			finish(t, l.Release)
		}
		thaw(t, fleet, 0)
		time.Sleep(ttl)
		synctest.Wait()
		require.Zero(t, rec.open)
	})
}

// votes keep what is told of nodes.
type votes struct {
	mu   sync.Mutex
	told map[string][]redlock.TraceVoteData
}

// watch returns those of a Quorum with that option.
func watch() (*votes, redlock.Option) {
	v := &votes{told: make(map[string][]redlock.TraceVoteData)}
	return v, told(func(data redlock.TraceVoteData) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.told[data.Node] = append(v.told[data.Node], data)
	})
}

// take returns what was told of a node since the last time.
func (v *votes) take(node string) []redlock.TraceVoteData {
	v.mu.Lock()
	defer v.mu.Unlock()
	told := v.told[node]
	delete(v.told, node)
	return told
}

func TestVotesAreTold(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		v, watching := watch()
		q := open(t, fleet, watching, redlock.WithMaxTTL(ttl))
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		pass(2 * ttl)
		for _, n := range fleet.Nodes() {
			told := v.take(nodeAddr(n))
			require.Len(t, told, 2)
			require.False(t, told[0].Votes)
			require.Error(t, told[0].Err, "it has not been asked yet")
			require.Equal(t, redlock.TraceVoteData{Quorum: q, Node: nodeAddr(n), Votes: true}, told[1])
		}
		node := nodeAddr(fleet.Node(1))
		restart(t, fleet, 1)
		restarted := time.Now()
		pass(2 * ttl)
		last := v.last(t, node)
		require.False(t, last.Votes)
		require.WithinRange(t, last.Until, restarted.Add(ttl), restarted.Add(2*quarantine))
		require.Equal(t, string(redlock.ConditionQuarantined), redlock.ErrorType(last.Err))
		require.Empty(t, append(v.take(nodeAddr(fleet.Node(0))), v.take(nodeAddr(fleet.Node(2)))...), "nothing has changed there")
		pass(2 * quarantine)
		require.Equal(t, redlock.TraceVoteData{Quorum: q, Node: node, Votes: true}, v.last(t, node))
		require.NoError(t, q.Close())
		told := v.take(node)
		require.Len(t, told, 1)
		require.False(t, told[0].Votes)
		require.Zero(t, told[0].Until)
		require.ErrorIs(t, told[0].Err, redlock.ErrClosed)
	})
}

// last is what was told last.
func (v *votes) last(t *testing.T, node string) redlock.TraceVoteData {
	t.Helper()
	told := v.take(node)
	require.NotEmpty(t, told)
	return told[len(told)-1]
}

// A node that does not answer has no vote, also where nobody asks for a lease; one that answers
// again within the time for which others wait for it has its vote at once.
func TestSilentNodeHasNoVote(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		v, watching := watch()
		open(t, fleet, watching)
		pass := func() { time.Sleep(2 * ttl); synctest.Wait() }
		pass()
		dead, frozen, well := nodeAddr(fleet.Node(0)), nodeAddr(fleet.Node(1)), nodeAddr(fleet.Node(2))
		v.take(well)
		require.NoError(t, fleet.Node(0).Kill())
		freeze(t, fleet, 1)
		pass()
		last := v.last(t, dead)
		require.False(t, last.Votes)
		require.Zero(t, last.Until)
		require.Equal(t, "connection", (&redlock.NodeError{Err: last.Err}).ErrorType())
		last = v.last(t, frozen)
		require.False(t, last.Votes)
		require.ErrorIs(t, last.Err, redlock.ErrTimeout)
		require.Empty(t, v.take(well))
		thaw(t, fleet, 1)
		pass()
		require.True(t, v.last(t, frozen).Votes)
		restart(t, fleet, 0)
		time.Sleep(2 * quarantine)
		synctest.Wait()
		require.True(t, v.last(t, dead).Votes)
	})
}

// await has a waiter begin, does what frees the key after a second, and returns how the waiter's
// acquisition ended.
func await(t *testing.T, fleet *redlocktest.Fleet, free func(), opts ...redlock.Option) redlock.TraceAcquireEndData {
	t.Helper()
	var end redlock.TraceAcquireEndData
	q := open(t, fleet, append(opts, ending(func(data redlock.TraceAcquireEndData) { end = data }))...)
	granted := acquiring(t.Context(), q, "key")
	synctest.Wait()
	time.Sleep(time.Second)
	free()
	g := <-granted
	require.NoError(t, g.err)
	require.NoError(t, g.lease.Release(t.Context()))
	return end
}

// A key is vacant from its release, or its expiry, until a waiter has it; one that nobody can have,
// because too few nodes answer, is so all the time.
func TestVacancy(t *testing.T) {
	for name, test := range map[string]struct {
		free        func(t *testing.T, fleet *redlocktest.Fleet, l *redlock.Lease)
		by          redlock.FreedBy
		least, most time.Duration
	}{
		"a release": {func(t *testing.T, _ *redlocktest.Fleet, l *redlock.Lease) { require.NoError(t, l.Release(t.Context())) },
			redlock.FreedByRelease, 0, 50 * time.Millisecond},
		"an expiry": {func(_ *testing.T, _ *redlocktest.Fleet, l *redlock.Lease) { l.StopExtending() }, redlock.FreedByExpiry, 1, 50 * time.Millisecond},
		"no quorum": {func(t *testing.T, fleet *redlocktest.Fleet, l *redlock.Lease) {
			freeze(t, fleet, 0, 1)
			<-l.Context().Done()
			time.Sleep(30 * time.Second)
			thaw(t, fleet, 0, 1)
		}, redlock.FreedByExpiry, 29 * time.Second, 35 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				l := acquire(t, open(t, fleet))
				end := await(t, fleet, func() { test.free(t, fleet, l) })
				require.Equal(t, test.by, end.FreedBy)
				require.GreaterOrEqual(t, end.Vacant, test.least)
				require.Less(t, end.Vacant, test.most)
				require.GreaterOrEqual(t, end.Duration, time.Second, "waiting counts")
				require.Less(t, end.Duration, test.most+time.Second+ttl)
			})
		})
	}
}

// Who need not wait, and who loses to somebody else, knows of no vacancy.
func TestNoVacancy(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var end redlock.TraceAcquireEndData
		q := open(t, fleet, ending(func(data redlock.TraceAcquireEndData) { end = data }))
		_, err := q.Acquire(t.Context(), "key")
		require.NoError(t, err)
		require.Empty(t, end.FreedBy)
		require.Zero(t, end.Vacant)
		require.Zero(t, end.Duration)

		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		_, err = q.Acquire(ctx, "key")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, end.FreedBy)
		require.Zero(t, end.Vacant)
		require.Equal(t, 10*ttl, end.Duration)
	})
}

// opened has used its nodes once.
func opened(t *testing.T, fleet *redlocktest.Fleet, identity string, opts ...redlock.Option) *redlock.Quorum {
	q := openOf(t, fleet.URLs(), append(opts, redlock.WithIdentity(identity))...)
	lease, err := q.Acquire(t.Context(), "another")
	require.NoError(t, err)
	require.NoError(t, lease.Release(t.Context()))
	synctest.Wait() // the last node has joined
	return q
}

// An attempt is granted by all nodes, too late: it has failed when it hears of that. Who was told
// meanwhile that the key is held comes when that is taken back, whether its owner asks again or
// not.
func TestLateGrantsCallTheNext(t *testing.T) {
	const oneWay = 300 * time.Millisecond // and back is more than the node timeout, 500 ms
	for name, ask := range map[string]func(context.Context, *redlock.Quorum, string, ...redlock.LeaseOption) <-chan grant{
		"of one that asks once": trying, "of one that asks again": acquiring,
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var lag atomic.Int64
				far := opened(t, fleet, "far", away(fleet, func(int) time.Duration { return time.Duration(lag.Load()) }))
				near := opened(t, fleet, "near", redlock.WithClientOption(fleet.ClientOption))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				lag.Store(int64(oneWay))
				failed := ask(ctx, far, "key")
				time.Sleep(oneWay + oneWay/2) // the nodes have granted it, and it has not heard yet
				_, err := near.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrHeld)
				began := time.Now()
				lease, err := near.Acquire(t.Context(), "key")
				require.NoError(t, err)
				require.Less(t, time.Since(began), 2*time.Second, "the TTL is 10 s")
				cancel()
				require.Error(t, (<-failed).err)
				require.NoError(t, lease.Release(t.Context()))
			})
		})
	}
}

// Two of five nodes have lost the holder's keys, so every attempt is granted by them. Those who
// wait ask no more often for that.
func TestWaitersOfAHeldKeyDoNotCallEachOther(t *testing.T) {
	const waiters, polls = 5, 6
	alone(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		long := redlock.WithMaxTTL(2 * polls * redlock.DefaultTTL)
		holder := opened(t, fleet, "holder", redlock.WithClientOption(fleet.ClientOption), long)
		lease, err := holder.Acquire(t.Context(), "key", redlock.WithTTL(2*polls*redlock.DefaultTTL), redlock.WithoutAutoExtend())
		require.NoError(t, err)
		synctest.Wait()
		for _, n := range fleet.Nodes()[:2] {
			n.FlushAll()
		}
		var attempts atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), polls*redlock.DefaultTTL)
		defer cancel()
		var work sync.WaitGroup
		for i := range waiters {
			q := opened(t, fleet, strconv.Itoa(i), redlock.WithClientOption(fleet.ClientOption), long, counting(&attempts))
			work.Go(func() {
				_, err := q.Acquire(ctx, "key")
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		work.Wait()
		require.Less(t, attempts.Load(), int64(waiters*(polls+10)))
		require.NoError(t, lease.Release(t.Context()))
	})
}

// caller is foreign code of every kind. Each kind calls the library back, the first few times that
// it is called itself.
type caller struct {
	slog.Handler

	q    atomic.Pointer[redlock.Quorum]
	mu   sync.Mutex
	came map[string]int // guarded by mu; calls that have come back, of each kind
	went map[string]int // guarded by mu
}

const callsBack = 2 // of each kind

func newCaller() *caller {
	return &caller{Handler: slog.DiscardHandler, came: make(map[string]int), went: make(map[string]int)}
}

// back calls the library.
func (c *caller) back(kind string, leases ...*redlock.Lease) {
	q := c.q.Load()
	c.mu.Lock()
	calls := q != nil && c.went[kind] < callsBack
	if calls {
		c.went[kind]++
	}
	c.mu.Unlock()
	if !calls {
		return
	}
	ctx := context.Background()
	_ = q.Healthy()
	q.Nodes(ctx)
	_ = q.CheckClock(time.Now())
	for _, key := range []string{"key", "other"} {
		_, _ = q.Holder(ctx, key)
		l, _ := q.TryAcquire(ctx, key)
		_ = l.Release(ctx)
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		l, _ = q.Acquire(ctx, key)
		cancel()
		_ = l.Release(ctx)
	}
	_, _ = board.Of(q).Journal(ctx, "kind", 10)
	for _, l := range leases {
		_ = l.Err()
		l.Deadline()
		_ = l.Context().Err()
		_ = l.Extend(ctx)
		if kind != "TraceReleaseStart" && l.FencingToken()%2 == 0 { // which never returns there, see AcquireTracer
			_ = l.Release(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came[kind]++
}

func (c *caller) Enabled(context.Context, slog.Level) bool { return true }

func (c *caller) Handle(_ context.Context, r slog.Record) error {
	c.back("log: " + r.Message)
	return nil
}

// hear calls back for a tracer.
func (c *caller) hear(ctx context.Context, kind string, data any) context.Context {
	var about []*redlock.Lease
	switch data := data.(type) {
	case redlock.TraceNodeStartData:
		kind += " " + string(data.Op)
	case redlock.TraceNodeEndData:
		kind += " " + string(data.Op)
	case redlock.TraceAcquireEndData:
		about = append(about, data.Lease)
	case redlock.TraceExtendData:
		about = append(about, data.Lease)
	case redlock.TraceReleaseStartData:
		about = append(about, data.Lease)
	case redlock.TraceReleaseEndData:
		about = append(about, data.Lease)
	case redlock.TraceLostData:
		about = append(about, data.Lease)
	case redlock.TraceVoteData:
		c.q.CompareAndSwap(nil, data.Quorum) // Open tells it, too
	}
	c.back("Trace"+kind, about...)
	return ctx
}

// A logger, a tracer or a callback that calls the library does not stop it, nor itself, whatever it
// is told and for which key it asks.
func TestForeignCodeCallsBack(t *testing.T) {
	hung := time.AfterFunc(3*time.Minute, func() { // of real time, and of seconds as a rule
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		panic("foreign code that calls the library back hangs")
	})
	defer hung.Stop()
	c := newCaller()
	alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, err := redlock.Open(fleet.URLs(), redlock.WithTTL(ttl), redlock.WithLogger(slog.New(c)), redlock.WithTracer(events(c.hear)),
			redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
				fleet.ClientOption(url, o)
				dial := o.DialCtxFn
				o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
					c.back("DialCtxFn")
					return dial(ctx, addr, d, tc)
				}
			}))
		require.NoError(t, err)
		c.q.Store(q)
		time.Sleep(ttl)
		hold := func(d time.Duration, keys ...string) {
			for _, key := range keys {
				ctx, cancel := context.WithTimeout(t.Context(), 2*ttl)
				if l, err := q.Acquire(ctx, key); err == nil {
					time.Sleep(d)
					_ = l.Release(ctx)
				}
				cancel()
			}
		}
		_ = q.Do(t.Context(), "done", func(context.Context, *redlock.Lease) error { c.back("Do"); return nil })
		hold(ttl, "key", "other")

		// A node has a damaged counter for a while.
		setCounter(t, fleet.Node(0), "key", "inf")
		time.Sleep(10 * ttl)
		hold(ttl, "key")
		time.Sleep(10 * ttl)
		hold(ttl, "key")

		// Two ask at once, of which one gives up; nodes fail and come back; a lease is lost.
		second := open(t, fleet)
		ctx, cancel := context.WithCancel(t.Context())
		held, err := second.TryAcquire(t.Context(), "contended")
		require.NoError(t, err)
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				l, _ := q.Acquire(ctx, "contended")
				_ = l.Release(t.Context())
			})
		}
		time.Sleep(ttl)
		ask(t, fleet.Node(2), "DEL", "tenure:{contended}") // so that an attempt is granted there, and taken back
		time.Sleep(2 * ttl)
		lost, err := q.TryAcquire(t.Context(), "lost")
		assert.NoError(t, err)
		freeze(t, fleet, 0, 1)
		time.Sleep(5 * ttl)
		thaw(t, fleet, 0, 1)
		cancel()
		waiting.Wait()
		_ = held.Release(t.Context())
		assert.ErrorIs(t, lost.Err(), redlock.ErrLost)
		require.NoError(t, fleet.Node(0).Restart(false))
		fleet.Node(1).JumpClock(time.Hour)
		time.Sleep(10 * ttl)
		hold(ttl, "key", "other")
		closed := make(chan struct{})
		go func() { defer close(closed); assert.NoError(t, q.Close()) }()
		<-closed
		synctest.Wait()
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(t, c.went, c.came)
	for _, kind := range []string{
		"TraceAcquireStart", "TraceAcquireEnd", "TraceAttemptStart", "TraceAttemptEnd", "TraceNodeStart acquire", "TraceNodeEnd acquire", "TraceNodeStart release",
		"TraceNodeEnd release", "TraceNodeEnd extend", "TraceExtend", "TraceReleaseStart", "TraceReleaseEnd", "TraceLost", "TraceVote", "Do", "DialCtxFn",
		"log: redlock: node does not vote for a key", "log: redlock: node votes for a key again", "log: redlock: node failing", "log: redlock: node answers again",
		"log: redlock: node does not vote", "log: redlock: no quorum to acquire a key that is waited for", "log: redlock: a server's clock is wrong",
	} {
		assert.NotZero(t, c.came[kind], "%s was not called", kind)
	}
}

// Who is told of another process, before this one has acquired anything, may acquire a lease: also
// if this process is let in only now.
func TestWhoIsToldOfOthersAcquires(t *testing.T) {
	for word, nodes := range map[string][]int{"a process was refused": {0, 1, 2}, "not refused any more": {0, 3, 4}} {
		t.Run(word, func(t *testing.T) {
			c := newCaller()
			told := "log: redlock: " + map[string]string{"a process was refused": "a process was refused that has other nodes",
				"not refused any more": "this process is not refused any more"}[word]
			bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
				known := make(chan struct{})
				q := openOn(t, fleet, []int{0, 1, 2})
				acquire(t, q)
				_, err := openOn(t, fleet, []int{0, 3, 4}).TryAcquire(t.Context(), "key")
				require.Error(t, err)
				time.Sleep(2 * ttl) // it tries again, and says that it was refused
				require.NoError(t, q.Close())
				called := dialOn(t, fleet, nodes, redlock.WithLogger(slog.New(only{c, told, known})))
				c.q.Store(called)
				close(known)
				time.Sleep(lifetime + lifetimeMore + 4*ttl)
				c.mu.Lock()
				defer c.mu.Unlock()
				require.Equal(t, map[string]int{told: 1}, c.came)
			})
		})
	}
}

// only hears one kind of line.
type only struct {
	*caller

	kind  string
	known chan struct{} // is closed when the caller knows its Quorum
}

func (o only) Handle(ctx context.Context, r slog.Record) error {
	if "log: "+r.Message != o.kind {
		return nil
	}
	<-o.known
	return o.caller.Handle(ctx, r)
}

// A logger that panics, or ends the goroutine, in the goroutine of who acquires leaves no lease
// behind, which would be extended for ever, and no round that Close would wait for.
func TestPanicOfALoggerLeavesNoLease(t *testing.T) {
	for word, before := range map[string]func(t *testing.T, fleet *redlocktest.Fleet){
		"a quorum answers again": func(t *testing.T, fleet *redlocktest.Fleet) {
			freeze(t, fleet, 0, 1)
			time.AfterFunc(5*ttl, func() { thaw(t, fleet, 0, 1) })
		},
		"node does not vote for a key": func(t *testing.T, fleet *redlocktest.Fleet) {
			set(t, fleet.Node(0), "tenure:{key}", "1 another/"+strings.Repeat("A", 22))
			delay(fleet, 10*time.Millisecond)
			fleet.Node(0).SetDelay(0) // so that its answer is there when the lease is granted
		},
		"a lease has a longer TTL": func(t *testing.T, fleet *redlocktest.Fleet) {
			for _, n := range fleet.Nodes() {
				ask(t, n, "SET", "tenure:{key}", "1 another/"+strings.Repeat("A", 22), "PX", "3600000")
			}
		},
	} {
		for how, do := range map[string]func(){"panic": func() { panic("broken") }, "goexit": runtime.Goexit} {
			t.Run(word+" "+how, func(t *testing.T) {
				bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
					var broke atomic.Bool
					q := open(t, fleet, redlock.WithLogger(slog.New(&breaking{slog.DiscardHandler, word, func() {
						broke.Store(true)
						do()
					}})))
					before(t, fleet)
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { _ = recover() }()
						_, _ = q.Acquire(t.Context(), "key")
					}()
					<-done
					require.True(t, broke.Load())
					time.Sleep(time.Second)
					for _, n := range fleet.Nodes() {
						lock, _ := n.Get("tenure:{key}")
						require.True(t, lock == "" || strings.Contains(lock, "another"), lock)
					}
				}) // Close waits for no round
			})
		}
	}
}

// breaking is a handler of logs that breaks who tells it something.
type breaking struct {
	slog.Handler

	word string // of the message
	do   func()
}

func (b *breaking) Enabled(context.Context, slog.Level) bool { return true }

func (b *breaking) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, b.word) {
		b.do()
	}
	return nil
}

// A tracer that panics before a node is asked, in whichever round, leaves no key, and no node of
// which Close waits for the answer.
func TestPanicOfATracerBeforeANodeIsAsked(t *testing.T) {
	for of, least := range map[string]int{"one round": 3, "a vote that is split": 5, "an agreement": 4} {
		t.Run(of, func(t *testing.T) {
			after := 0
			for broke := true; broke; after++ {
				alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
					q := open(t, fleet, told(breaksBefore(redlock.OpAcquire, after)))
					switch of {
					case "a vote that is split":
						freeze(t, fleet, 2)
						squat(t, fleet.Node(1), "z")
						time.AfterFunc(ttl/20+200*time.Microsecond, func() { unsquat(fleet.Node(1)) })
					case "an agreement":
						disagree(t, fleet)
					}
					func() {
						defer func() { broke = recover() != nil }()
						l, err := q.TryAcquire(t.Context(), "key")
						require.NoError(t, err)
						finish(t, l.Release)
					}()
					thaw(t, fleet, 2)
					time.Sleep(time.Second)
					require.Zero(t, on(fleet, "key"))
				})
			}
			require.Greater(t, after, least)
		})
	}
}

// A tracer that panics while an attempt takes back what nodes have granted leaves no node of which
// Close waits for the answer.
func TestPanicOfATracerWhileGrantsAreTakenBack(t *testing.T) {
	after := 0
	for broke := true; broke; after++ {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet, told(breaksBefore(redlock.OpRelease, after)))
			for i, owner := range []string{"y", "z"} { // they answer last, and the first node has granted by then
				squat(t, fleet.Node(1+i), owner)
				fleet.Node(1 + i).SetDelay(5 * time.Millisecond)
			}
			func() {
				defer func() { broke = recover() != nil }()
				_, err := q.TryAcquire(t.Context(), "key")
				require.Error(t, err)
			}()
			time.Sleep(2 * ttl)
			q.Nodes(t.Context())
		}) // which closes it
	}
	require.Greater(t, after, 1)
}

// breaksBefore panics when a node is to be asked for that, after so many.
func breaksBefore(op redlock.Op, left int) func(redlock.TraceNodeStartData) {
	return func(data redlock.TraceNodeStartData) {
		if data.Op == op || op == redlock.OpAcquire && data.Op == redlock.OpAgree {
			if left--; left == -1 {
				panic("broken")
			}
		}
	}
}
