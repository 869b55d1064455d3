package redlock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// grouped acquires key0, key1 and so on, which the Quorum extends, and waits until they travel
// together.
func grouped(t *testing.T, q *redlock.Quorum, n int, opts ...redlock.LeaseOption) []*redlock.Lease {
	t.Helper()
	leases := make([]*redlock.Lease, n)
	var busy sync.WaitGroup
	for i := range leases {
		busy.Go(func() {
			var err error
			leases[i], err = q.TryAcquire(t.Context(), fmt.Sprint("key", i), opts...)
			assert.NoError(t, err)
		})
	}
	busy.Wait()
	require.False(t, t.Failed())
	time.Sleep(2 * ttl)
	return leases
}

// stay checks for some time that all leases are valid, and that their keys are on these nodes.
func stay(t *testing.T, leases []*redlock.Lease, fleet *redlocktest.Fleet, nodes ...int) {
	t.Helper()
	for range 8 {
		time.Sleep(ttl / 2)
		for i, l := range leases {
			require.NoError(t, l.Err(), "lease %d", i)
			for _, j := range nodes {
				_, held := fleet.Node(j).Get(lockOf(l))
				require.True(t, held, "lease %d on node %d", i, j)
			}
		}
	}
}

// A request to each node extends many leases.
func TestGroupExtendsManyLeases(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		const many, extensions = 600, 12
		leases := grouped(t, open(t, fleet), many)
		before := commands(fleet, make([]int, 3))
		stay(t, leases, fleet, 0, 1, 2)
		for i, n := range commands(fleet, before) {
			require.Less(t, n, many*extensions/10, "in four TTLs, on node %d", i)
		}
	})
}

// A key that is gone on one node is put back, and one that is somebody else's there is left alone.
// Where a quorum has lost a key its lease ends, and no other.
func TestGroupWithKeysThatAreNotThere(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		leases := grouped(t, open(t, fleet), 50)
		const gone, taken, lost, emptied = 3, 5, 7, 9
		ask(t, fleet.Node(0), "DEL", lockOf(leases[gone]))
		set(t, fleet.Node(1), lockOf(leases[taken]), "somebody else")
		for i := range 2 {
			set(t, fleet.Node(i), lockOf(leases[lost]), "somebody else")
			ask(t, fleet.Node(i), "DEL", lockOf(leases[emptied]))
		}
		time.Sleep(ttl)
		for i, l := range leases {
			if i == lost || i == emptied {
				require.ErrorIs(t, l.Err(), redlock.ErrLost, "%d", i)
				require.ErrorContains(t, l.Err(), "no longer holds it")
				continue
			}
			require.NoError(t, l.Err(), "%d", i)
			for j, n := range fleet.Nodes() {
				owner, held := n.Get(lockOf(l))
				require.True(t, held)
				require.Equal(t, i == taken && j == 1, owner == "somebody else")
			}
		}
		stay(t, append(leases[:lost:lost], leases[emptied+1:]...), fleet, 0, 2)
	})
}

// Leases that want more travel by themselves, with another TTL, and those that nobody extends do
// not travel.
func TestGroupLeavesOutWhatIsMore(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		leases := grouped(t, q, 20)
		short, err := q.TryAcquire(t.Context(), "short", redlock.WithTTL(ttl/2))
		require.NoError(t, err)
		manual, err := q.TryAcquire(t.Context(), "manual", redlock.WithoutAutoExtend())
		require.NoError(t, err)
		for range 10 {
			time.Sleep(ttl / 4)
			for _, n := range fleet.Nodes() {
				require.LessOrEqual(t, n.TTL(lockOf(short)), ttl/2)
			}
		}
		require.ErrorIs(t, manual.Err(), redlock.ErrLost)
		stay(t, append(leases, short), fleet, 0, 1, 2)
	})
}

// Who traces nodes changes nothing of how leases are extended, and hears of each command once a
// node.
func TestGroupIsTracedOnceANode(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var starts, ends, each atomic.Int64 // commands, those that went well, and the leases of those that are for several
		leases := grouped(t, open(t, fleet, redlock.WithTracer(events(func(ctx context.Context, _ string, data any) context.Context {
			switch data := data.(type) {
			case redlock.TraceNodeStartData:
				starts.Add(1)
				each.Add(int64(data.Leases))
			case redlock.TraceNodeEndData:
				if data.OK && data.Err == nil {
					ends.Add(1)
				}
			}
			return ctx
		}))), 20)
		before := commands(fleet, make([]int, 3))
		started, ended, shared := starts.Load(), ends.Load(), each.Load()
		time.Sleep(ttl)
		started, ended, shared = starts.Load()-started, ends.Load()-ended, each.Load()-shared
		require.GreaterOrEqual(t, shared, int64(2*3*len(leases)), "each lease is extended twice a TTL on each node")
		require.LessOrEqual(t, started, shared/2, "together, mostly")
		require.Equal(t, started, ended)
		for _, n := range commands(fleet, before) {
			require.LessOrEqual(t, int64(n), started/3+30, "what is traced is what is sent, and looks at the servers")
		}
	})
}

// acquireMany acquires key0, key1 and so on, which are extended when the test says so. All counters
// have their tokens, so the next extension changes nothing but the expiry.
func acquireMany(t *testing.T, q *redlock.Quorum, n int) []*redlock.Lease {
	t.Helper()
	leases := make([]*redlock.Lease, n)
	for i := range leases {
		l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", i), redlock.WithoutAutoExtend())
		require.NoError(t, err)
		require.NoError(t, l.Extend(t.Context()))
		leases[i] = l
	}
	synctest.Wait()
	return leases
}

// together has all that f asks the nodes for reach each of them in one batch: they are busy when it
// asks.
func together(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum, f func()) {
	t.Helper()
	delay(fleet, turn/4)
	var asked sync.WaitGroup
	asked.Go(func() {
		_, err := q.Holder(t.Context(), "other")
		assert.Error(t, err, "nobody holds it, or that is not known")
	})
	time.Sleep(time.Millisecond)
	delay(fleet, 0) // but for that answer
	f()
	asked.Wait()
	synctest.Wait()
}

// extendAll starts extensions of the leases and returns a channel with what each came to.
func extendAll(t *testing.T, leases []*redlock.Lease) []chan error {
	t.Helper()
	results := make([]chan error, len(leases))
	for i, l := range leases {
		results[i] = make(chan error, 1)
		go func() { results[i] <- l.Extend(t.Context()) }()
	}
	synctest.Wait()
	return results
}

func lockOf(l *redlock.Lease) string { return "tenure:{" + l.Key() + "}" }

// commands returns how many commands each node has run since the last time.
func commands(fleet *redlocktest.Fleet, before []int) (since []int) {
	for i, n := range fleet.Nodes() {
		since = append(since, n.Commands()-before[i])
	}
	return since
}

// A release among the extensions is for its own lease, which no extension sets again.
func TestExtensionsWithARelease(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		leases := acquireMany(t, q, 10)
		time.Sleep(ttl / 4)
		const released = 4
		together(t, fleet, q, func() {
			results := extendAll(t, leases)
			go func() { assert.NoError(t, leases[released].Release(t.Context())) }()
			synctest.Wait()
			more := extendAll(t, leases)
			require.ErrorIs(t, <-more[released], redlock.ErrReleased)
			require.ErrorIs(t, <-results[released], redlock.ErrReleased)
			for i := range leases {
				if i != released {
					require.NoError(t, <-results[i])
					require.NoError(t, <-more[i])
				}
			}
		})
		for i, l := range leases {
			for j, n := range fleet.Nodes() {
				_, held := n.Get(lockOf(l))
				require.Equal(t, i != released, held, "lease %d on node %d", i, j)
			}
		}
	})
}

// A lease that lives for long is extended often, and nodes fail for a while. They are not left in
// peace for as long as that lease could bear: others, older and newer ones, are extended as ever.
func TestLongLeaseKeepsNoNodeFromOthers(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithMaxTTL(time.Hour))
		long, err := q.TryAcquire(t.Context(), "long", redlock.WithTTL(time.Hour), redlock.WithExtendInterval(time.Second))
		require.NoError(t, err)
		short := acquire(t, q)
		for range 5 {
			time.Sleep(3 * ttl)
			freeze(t, fleet, 0, 1, 2)
			time.Sleep(ttl / 2)
			thaw(t, fleet, 0, 1, 2)
			time.Sleep(3 * ttl)
			require.NoError(t, short.Err())
		}
		require.NoError(t, short.Release(t.Context()))
		freeze(t, fleet, 0, 1, 2)
		time.Sleep(5 * ttl)
		thaw(t, fleet, 0, 1, 2)
		time.Sleep(ttl)
		short = acquire(t, q)
		time.Sleep(3 * ttl)
		require.NoError(t, short.Err())
		require.NoError(t, long.Err())
	})
}

// on is how many nodes have a key.
func on(fleet *redlocktest.Fleet, key string) (n int) {
	for _, node := range fleet.Nodes() {
		if _, ok := node.Get("tenure:{" + key + "}"); ok {
			n++
		}
	}
	return n
}

// inTheWay puts another owner's key on a node.
func inTheWay(t *testing.T, fleet *redlocktest.Fleet, node int, of time.Duration) {
	t.Helper()
	ask(t, fleet.Node(node), "SET", "tenure:{key}", "somebody/AAAAAAAAAAAAAAAAAAAAAA", "PX", fmt.Sprint(of.Milliseconds()))
}

// Also if the node's refusal comes after the grant, which does not wait for it; and if what is in
// the way goes a while later only.
func TestNodeThatRefusedIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		delay time.Duration // of the node's answers
		gone  time.Duration // when the other key is
		soon  time.Duration // when the node has the lease's key
	}{
		{"at once", 0, 10 * time.Millisecond, 60 * time.Millisecond},
		{"after the grant", 20 * time.Millisecond, 10 * time.Millisecond, 120 * time.Millisecond},
		{"a distant rival", 0, 400 * time.Millisecond, 900 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
				inTheWay(t, fleet, 2, test.gone)
				fleet.Node(2).SetDelay(test.delay)
				l := acquire(t, q)
				require.Equal(t, 3, on(fleet, "key"))
				time.Sleep(test.soon)
				owner, _ := fleet.Node(0).Get("tenure:{key}")
				other, _ := fleet.Node(2).Get("tenure:{key}")
				require.Equal(t, owner, other, "the node did not get the lease's key")
				require.NoError(t, l.Err())
			})
		})
	}
}

// A waiter whose attempt was granted by a node that lacks the holder's key, and taken back there,
// is in the queue of that node all the same.
func TestWaiterJoinsANodeThatGrantedToIt(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet)
		acquire(t, holder, redlock.WithoutAutoExtend())
		q := open(t, fleet)
		listening(t, holder, q)
		for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
			ask(t, fleet.Node(2), "DEL", "tenure:{key}")
			fleet.Node(2).SetDelay(delay)
			w := waitFor(t, q)
			fleet.Node(2).SetDelay(0)
			require.Equal(t, 2, on(fleet, "key"), "the attempt was not taken back")
			require.Len(t, queue(t, fleet, 0), 1)
			require.Equal(t, queue(t, fleet, 0), queue(t, fleet, 2))
			w.cancel()
			<-w.granted
			synctest.Wait()
			require.Empty(t, append(queue(t, fleet, 0), queue(t, fleet, 2)...))
		}
	})
}

// The first attempt of a waiter splits the vote. A far node tells late that it granted it, when the
// waiter has asked again, and sleeps. It is in the queue of that node all the same.
func TestLateGrantOfASplitVoteKeepsThePlace(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		const near, away = time.Millisecond / 2, 50 * time.Millisecond
		q := open(t, fleet, distant(fleet, near, near, near, near, away))
		listening(t, open(t, fleet), q)
		q.Nodes(t.Context())
		time.Sleep(ttl / 4)
		for i := range 4 {
			set(t, fleet.Node(i), "tenure:{key}", fmt.Sprint(i, "/", strings.Repeat("z", 22)))
		}
		ctx, cancel := context.WithCancel(t.Context())
		granted := acquiring(ctx, q, "key")
		time.Sleep(4 * near)
		for i := range 4 {
			squat(t, fleet.Node(i), "z")
		}
		time.Sleep(away)
		require.Equal(t, 5, on(fleet, "key"), "it has not granted it, so this tests nothing")
		time.Sleep(4 * away)
		require.Equal(t, 4, on(fleet, "key"))
		for i := range 5 {
			require.Len(t, queue(t, fleet, i), 1, "node %d", i)
		}
		cancel()
		<-granted
	})
}

// One that gave up before the answer came does not.
func TestWaiterThatGaveUpJoinsNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet)
		acquire(t, holder, redlock.WithoutAutoExtend())
		q := open(t, fleet)
		listening(t, holder, q)
		ask(t, fleet.Node(2), "DEL", "tenure:{key}")
		fleet.Node(2).SetDelay(20 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := q.Acquire(ctx, "key")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(100 * time.Millisecond)
		fleet.Node(2).SetDelay(0)
		require.Empty(t, queue(t, fleet, 2))
	})
}

// far is the round trip to nodes that are far. It divides nothing else that there is.
const far = 20 * time.Millisecond

// bubbleFar is bubble with nodes that are far, and a Quorum that knows.
func bubbleFar(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum)) {
	t.Helper()
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		delay(fleet, far)
		q := open(t, fleet)
		for _, n := range q.Nodes(t.Context()) {
			require.True(t, n.Votes)
		}
		// With the first that overlap valkey-go begins to send one command while another is on its
		// way.
		for i := range 2 {
			timeOf(t, q, fmt.Sprint("first", i))
		}
		time.Sleep(time.Second)
		test(t, fleet, q)
	})
}

// timeOf starts an acquisition and returns a channel with how long it took.
func timeOf(t *testing.T, q *redlock.Quorum, key string) chan time.Duration {
	t.Helper()
	result := make(chan time.Duration, 1)
	began := time.Now()
	go func() {
		_, err := q.TryAcquire(t.Context(), key)
		assert.NoError(t, err)
		result <- time.Since(began)
	}()
	synctest.Wait()
	return result
}

// Who comes while others' commands are on their way does not wait for their answers, up to four
// batches.
func TestFarNodesHaveSeveralBatchesInFlight(t *testing.T) {
	bubbleFar(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		var results []chan time.Duration
		for i := range 6 {
			results = append(results, timeOf(t, q, fmt.Sprint("key", i)))
			time.Sleep(time.Millisecond)
		}
		for _, result := range results[:4] {
			require.Equal(t, far, <-result)
		}
		require.Equal(t, far+far-4*time.Millisecond, <-results[4], "it waits for the first to come back")
		require.Equal(t, far+far-5*time.Millisecond, <-results[5], "and goes with that")
	})
}

// Connections that are dead without a word are given up when they have not answered, so that a
// lease is extended on new ones.
func TestFarNodesWithDeadConnections(t *testing.T) {
	t.Parallel()
	for _, trip := range []time.Duration{0, far} {
		t.Run(fmt.Sprint(trip), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				delay(fleet, trip)
				var way atomic.Pointer[partition]
				way.Store(newPartition())
				q := open(t, fleet, redlock.WithTTL(10*time.Second), redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
					fleet.ClientOption(url, o)
					dial := o.DialCtxFn
					o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
						return way.Load().through(dial)(ctx, addr, d, c)
					}
				}))
				for i := range 5 {
					timeOf(t, q, fmt.Sprint("first", i))
				}
				time.Sleep(time.Second)
				l := acquire(t, q)
				way.Swap(newPartition()).cut.Store(true)
				time.Sleep(time.Minute)
				require.NoError(t, l.Err())
				require.NoError(t, l.Release(t.Context()))
			})
		})
	}
}

// acquireAll starts an acquisition of each key and returns, in their order, channels with what came
// of them.
func acquireAll(t *testing.T, q *redlock.Quorum, keys []string) []<-chan grant {
	t.Helper()
	results := make([]<-chan grant, len(keys))
	for i, key := range keys {
		results[i] = trying(t.Context(), q, key)
		synctest.Wait()
	}
	return results
}

func names(prefix string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint(prefix, i))
	}
	return keys
}

func TestManyAcquisitionsAndReleasesAreFewCommands(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		old := acquireMany(t, q, 30)
		before := commands(fleet, make([]int, 3))
		var results []<-chan grant
		var releases sync.WaitGroup
		together(t, fleet, q, func() {
			results = acquireAll(t, q, names("new", 100))
			for _, l := range old {
				releases.Go(func() { assert.NoError(t, l.Release(t.Context())) })
			}
			synctest.Wait()
		})
		releases.Wait()
		for _, n := range commands(fleet, before) { // 130 acquisitions and releases, some that share a counter, a question, and perhaps a look at the server
			require.LessOrEqual(t, n, 8)
		}
		for i := range results {
			r := <-results[i]
			require.NoError(t, r.err)
			for j, n := range fleet.Nodes() {
				owner, _ := n.Get(lockOf(r.lease))
				require.Contains(t, owner, q.Identity(), "key %d on node %d", i, j)
				require.True(t, strings.HasPrefix(owner, fmt.Sprint(r.lease.FencingToken(), " ")), "%d: %s", r.lease.FencingToken(), owner)
				require.GreaterOrEqual(t, counterOf(t, n, r.lease.Key()), fmt.Sprint(r.lease.FencingToken()), "other keys may share it")
			}
		}
		for _, l := range old {
			require.Zero(t, on(fleet, l.Key()))
		}
	})
}

// What comes for a key after its release finds it free, also in the same batch; and who comes
// before the release does not.
func TestPacketKeepsTheOrderForAKey(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		leases := acquireMany(t, q, 3)
		var early, late []<-chan grant
		var releases sync.WaitGroup
		together(t, fleet, q, func() {
			early = acquireAll(t, q, names("key", 3))
			for _, l := range leases {
				releases.Go(func() { assert.NoError(t, l.Release(t.Context())) })
			}
			synctest.Wait()
			late = acquireAll(t, q, names("key", 3))
		})
		releases.Wait()
		for i := range leases {
			require.ErrorIs(t, (<-early[i]).err, redlock.ErrHeld)
			require.NoError(t, (<-late[i]).err)
		}
	})
}
