package redlock_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// startCluster makes one Valkey Cluster of n servers, which a Quorum counts as one node.
func startCluster(t *testing.T, n int) (*servers, valkey.Client) {
	t.Helper()
	s := startServers(t, n, valkeytest.WithArgs("--cluster-enabled", "yes"))
	const slots = 16384
	for i := range n {
		first, last := i*slots/n, (i+1)*slots/n-1
		s.do([]string{"CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(first), fmt.Sprint(last)}, i)
		s.do([]string{"CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i + 1)}, i)
	}
	host, port, err := net.SplitHostPort(s.Node(0).Addr())
	require.NoError(t, err)
	for i := 1; i < n; i++ {
		s.do([]string{"CLUSTER", "MEET", host, port}, i)
	}
	require.Eventually(t, func() bool {
		for _, node := range s.Nodes() {
			info, err := node.Do(t, "CLUSTER", "INFO").ToString()
			if err != nil || !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, fmt.Sprint("cluster_known_nodes:", n, "\r")) {
				return false
			}
		}
		return true
	}, 30*time.Second, 10*pollTick, "the cluster never formed")
	client, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{s.Node(0).Addr()}})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return s, client
}

// clusterKeys are spread over all of a cluster's slots.
const clusterKeys = 24

func TestClusterIsANode(t *testing.T) {
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprint(size, " servers"), func(t *testing.T) {
			t.Parallel()
			s, client := startCluster(t, size)
			q, err := redlock.New([]valkey.Client{client}, quietOptions()...)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, q.Close()) })
			status := q.Nodes(t.Context())
			require.True(t, status[0].Reachable, "%+v", status)

			// One key after the other, so that each finds scripts missing on its server.
			leases := make([]*redlock.Lease, clusterKeys)
			for i := range leases {
				l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", i))
				require.NoError(t, err)
				require.NoError(t, l.Extend(t.Context()))
				leases[i] = l
			}
			for _, l := range leases {
				s.staysHeld(l, serverTTL/clusterKeys)
				_, err := q.TryAcquire(t.Context(), l.Key())
				require.ErrorIs(t, err, redlock.ErrHeld)
				h, err := q.Holder(t.Context(), l.Key())
				require.NoError(t, err)
				require.Equal(t, l.FencingToken(), h.FencingToken)
			}
			for _, l := range leases {
				granted := s.acquire(q, l.Key(), redlock.WithTTL(longTTL))
				require.Eventually(t, func() bool { return s.queued(l.Key()) }, longTTL, pollTick)
				require.NoError(t, l.Release(t.Context()))
				g := receive(t, granted, longTTL/2, "not woken")
				require.NoError(t, g.err)
				require.Greater(t, g.lease.FencingToken(), l.FencingToken())
				require.NoError(t, g.lease.Release(t.Context()))
			}
		})
	}
}

// queued reports whether somebody waits for the key on the server of a cluster that has it.
func (s *servers) queued(key string) bool {
	s.t.Helper()
	for _, n := range s.Nodes() {
		waiting, err := n.Do(s.t, "ZCARD", lockKey(key)+":wait").AsInt64()
		if err == nil && waiting > 0 {
			return true
		}
	}
	return false
}

// Requests for keys of several slots travel in one batch, with scripts that one server knows and another does not,
// and with questions that belong to no slot.
func TestClusterServesManyKeysAtOnce(t *testing.T) {
	t.Parallel()
	s, client := startCluster(t, 3)
	q, err := redlock.New([]valkey.Client{client}, quietOptions()...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	t.Cleanup(asking.Wait)
	t.Cleanup(cancel)
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				q.Nodes(ctx)
			}
		})
	}
	for range 5 {
		s.do([]string{"SCRIPT", "FLUSH"})
		var work sync.WaitGroup
		for i := range clusterKeys {
			work.Go(func() {
				l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", i))
				if assert.NoError(t, err) {
					assert.NoError(t, l.Extend(t.Context()))
					assert.NoError(t, l.Release(t.Context()))
				}
			})
		}
		work.Wait()
	}
	require.True(t, q.Nodes(t.Context())[0].Reachable)
	s.requireFree(serverTTL/2, "released")
}
