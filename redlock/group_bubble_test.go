package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// grouped acquires key0, key1 and so on, which the Quorum extends, and waits until their tokens
// have been spread and they travel together.
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
		ask(t, fleet, 0, "DEL", lockOf(leases[gone]))
		set(t, fleet.Node(1), lockOf(leases[taken]), "somebody else")
		for i := range 2 {
			set(t, fleet.Node(i), lockOf(leases[lost]), "somebody else")
			ask(t, fleet, i, "DEL", lockOf(leases[emptied]))
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
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
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
		tracer := &nodeTracer{}
		leases := grouped(t, open(t, fleet, redlock.WithTracer(tracer)), 20)
		before := make([]int, 3)
		for i, n := range fleet.Nodes() {
			before[i] = n.Commands()
		}
		tracer.take()
		time.Sleep(ttl)
		started, ended := tracer.take()
		require.NotEmpty(t, started)
		shared := 0
		for _, d := range started {
			require.Equal(t, redlock.OpExtend, d.Op)
			require.Equal(t, d.Leases > 0, d.Key == "", "%+v", d)
			shared += d.Leases
		}
		require.GreaterOrEqual(t, shared, 2*3*len(leases), "each lease is extended twice a TTL on each node")
		require.LessOrEqual(t, len(started), shared/2, "together, mostly")
		require.Len(t, ended, len(started))
		for _, d := range ended {
			require.True(t, d.OK)
			require.NoError(t, d.Err)
		}
		sent := 0
		for i, n := range fleet.Nodes() {
			sent += n.Commands() - before[i]
		}
		require.LessOrEqual(t, sent, len(started)+3*30, "what is traced is what is sent, and looks at the servers")
	})
}

// nodeTracer keeps what it is told.
type nodeTracer struct {
	rounds
	mu      sync.Mutex
	started []redlock.TraceNodeStartData
	ended   []redlock.TraceNodeEndData
}

func (n *nodeTracer) TraceNodeStart(ctx context.Context, data redlock.TraceNodeStartData) context.Context {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.started = append(n.started, data)
	return ctx
}

func (n *nodeTracer) TraceNodeEnd(_ context.Context, data redlock.TraceNodeEndData) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(n.ended, data)
}

func (n *nodeTracer) take() (started []redlock.TraceNodeStartData, ended []redlock.TraceNodeEndData) {
	n.mu.Lock()
	defer n.mu.Unlock()
	started, ended = n.started, n.ended
	n.started, n.ended = nil, nil
	return started, ended
}
