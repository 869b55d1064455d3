package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

func TestHolderIsSeenByEverybody(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	const ttl = 4 * serverTTL
	q := s.open(redlock.WithTTL(ttl), redlock.WithIdentity("worker-1"))
	other := s.wrap(redlock.WithTTL(ttl), redlock.WithNodeTimeout(ttl/4))
	_, err := other.Holder(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNotHeld)

	l := s.hold(q, "key")
	h, err := other.Holder(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, "key", h.Key)
	require.Equal(t, "worker-1", h.Identity)
	require.Equal(t, l.FencingToken(), h.FencingToken)
	require.GreaterOrEqual(t, h.Nodes, 2)
	require.Greater(t, h.TTL, ttl/2)
	require.LessOrEqual(t, h.TTL, ttl)

	s.freeze(2)
	require.Less(t, took(func() { h, err = other.Holder(t.Context(), "key") }), ttl/8)
	require.NoError(t, err)
	require.Equal(t, "worker-1", h.Identity)
	s.freeze(1)
	_, err = other.Holder(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorIs(t, err, redlock.ErrTimeout)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = other.Holder(ctx, "key")
	require.ErrorIs(t, err, context.Canceled)
	s.thaw(1, 2)
	require.NoError(t, l.Release(t.Context()))
	require.Eventually(t, func() bool { _, err = other.Holder(t.Context(), "key"); return err != nil }, longTTL, pollTick)
	require.ErrorIs(t, err, redlock.ErrNotHeld)
}

// A payload of any bytes, as long as it may be, is read by another process, and lives and ends with
// its lease.
func TestPayloadOfAnyBytes(t *testing.T) {
	t.Parallel()
	var every strings.Builder
	for i := range redlock.MaxPayloadLength {
		every.WriteByte(byte(i)) // blanks, line ends, zero bytes, / ? %, what is not UTF-8
	}
	s := startServers(t, 3)
	q, other := s.open(redlock.WithIdentity("a/b c?d")), s.wrap(redlock.WithIdentity("other"))
	for i, payload := range []string{every.String(), "\x00", " \r\n", "/?%/?%", "\xff\xfe", strings.Repeat("\xff", redlock.MaxPayloadLength), "10.0.0.1:8080"} {
		key := "key " + strconv.Itoa(i)
		l := s.hold(q, key, redlock.WithPayload(payload))
		h, err := other.Holder(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, []any{"a/b c?d", payload}, []any{h.Identity, h.Payload})
		_, err = other.TryAcquire(t.Context(), key)
		var held *redlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, []any{"a/b c?d", payload}, []any{held.Holder.Identity, held.Holder.Payload})
		require.NoError(t, l.Extend(t.Context()))
		waits := s.wait(other, key, redlock.WithPayload("next"))
		s.do([]string{"DEL", lockKey(key)}, 0)
		s.staysHeld(l, 2*serverTTL)
		h, err = other.Holder(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, payload, h.Payload)
		require.Contains(t, s.locks(0), lockKey(key), "it was put back")
		require.NoError(t, l.Release(t.Context()))
		next := receive(t, waits, longTTL, "the release called nobody")
		require.NoError(t, next.err)
		h, err = q.Holder(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, []any{"other", "next"}, []any{h.Identity, h.Payload})
		require.NoError(t, next.lease.Release(t.Context()))
	}
	s.requireFree(longTTL, "a release did not find its key")
}

// As many leases as one command extends and one command asks for have the longest payloads, each
// byte of which is three on the servers: no answer is too long for the client.
func TestPayloadsOfManyLeases(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q, other := s.open(redlock.WithTTL(4*serverTTL)), s.open(redlock.WithTTL(4*serverTTL))
	payload := strings.Repeat("\xff", redlock.MaxPayloadLength)
	const many = 200
	leases := make([]*redlock.Lease, many)
	errs := make([]error, many)
	each := func(f func(i int) error) {
		var all sync.WaitGroup
		for i := range leases {
			all.Go(func() { errs[i] = f(i) })
		}
		all.Wait()
		require.NoError(t, errors.Join(errs...))
	}
	each(func(i int) (err error) {
		leases[i], err = q.Acquire(t.Context(), "key "+strconv.Itoa(i), redlock.WithPayload(payload))
		return err
	})
	each(func(i int) error {
		_, err := other.TryAcquire(t.Context(), "key "+strconv.Itoa(i))
		var held *redlock.HeldError
		if !errors.As(err, &held) || held.Holder.Payload != payload {
			return fmt.Errorf("%d: %w", i, err)
		}
		return nil
	})
	time.Sleep(6 * serverTTL)
	for _, l := range leases {
		require.NoError(t, l.Err())
	}
	each(func(i int) error { return leases[i].Release(t.Context()) })
	s.requireFree(longTTL, "a release did not find its key")
}

// A key that only a minority has is nobody's, and one that another program wrote is reported as it
// is.
func TestHolderNeedsAQuorum(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	s.squat("key", longTTL, 0)
	_, err := q.Holder(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNotHeld)
	s.do([]string{"SET", lockKey("key"), "somebody's own format"})
	h, err := q.Holder(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, "somebody's own format", h.Identity)
}

func TestNodesTellTheirState(t *testing.T) {
	t.Parallel()
	s := startServers(t, 5)
	host, port, err := net.SplitHostPort(s.Node(0).Addr())
	require.NoError(t, err)
	s.do([]string{"REPLICAOF", host, port}, 1)
	q := s.open(redlock.WithReplicas())
	s.freeze(2)
	s.kill(3)
	var nodes []redlock.NodeStatus
	require.Less(t, took(func() { nodes = q.Nodes(t.Context()) }), serverTTL/2)
	require.Len(t, nodes, 5)
	for i, n := range nodes {
		require.Equal(t, s.Node(i).Addr(), n.Node)
	}
	for _, i := range []int{0, 4} {
		require.True(t, nodes[i].Reachable)
		require.Equal(t, "master", nodes[i].Role)
		require.Empty(t, nodes[i].Warnings)
		require.NoError(t, nodes[i].Err)
		require.Positive(t, nodes[i].Latency)
		require.Less(t, nodes[i].Latency, serverTTL/2)
	}
	require.True(t, nodes[1].Reachable)
	require.Equal(t, "slave", nodes[1].Role)
	require.ErrorContains(t, nodes[1].Err, "replica")
	require.Empty(t, nodes[1].Warnings, "it is said once")
	require.False(t, nodes[2].Reachable)
	require.Equal(t, "timeout", redlock.ErrorType(nodes[2].Err))
	require.False(t, nodes[3].Reachable)
	require.Equal(t, "connection", redlock.ErrorType(nodes[3].Err))
	require.ErrorContains(t, nodes[3].Err, s.Node(3).Addr())

	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	require.Less(t, took(func() { nodes = q.Nodes(ctx) }), serverTTL/4)
	require.Len(t, nodes, 5)
}

// A replica does not take writes, so its vote is missing and its answer says why.
func TestReplicaHasNoVote(t *testing.T) {
	t.Parallel()
	s := startServers(t, 2)
	host, port, err := net.SplitHostPort(s.Node(0).Addr())
	require.NoError(t, err)
	s.do([]string{"REPLICAOF", host, port}, 1)
	_, err = tryUntilAnswered(t, s.open(redlock.WithReplicas()), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "its role is \"slave\", its master "+s.Node(0).Addr())
	var ne *redlock.NodeError
	require.ErrorAs(t, err, &ne)
	require.Equal(t, s.Node(1).Addr(), ne.Node)
	require.Equal(t, "replica", ne.ErrorType())
}

// A key that something else wrote, without an expiry, is said to have none, and costs a waiter one
// look a TTL.
func TestForeignKeyWithoutExpiry(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	s.do([]string{"SET", lockKey("key"), "a backup"})
	_, err := tryUntilAnswered(t, q, "key")
	var held *redlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, redlock.NoExpiry, held.Holder.TTL)
	require.Contains(t, err.Error(), "a backup on ")
	require.Contains(t, err.Error(), "without expiry")
	require.NotContains(t, err.Error(), "h0m0s")
	h, err := q.Holder(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, redlock.NoExpiry, h.TTL)

	granted := s.acquire(q, "key")
	require.Eventually(t, func() bool { return s.waiting(0, "key") > 0 }, longTTL, pollTick)
	s.resetStats()
	time.Sleep(3 * serverTTL)
	require.Less(t, s.own(0)["evalsha"], int64(10), "it does not wait but ask")
	s.do([]string{"DEL", lockKey("key")})
	require.NoError(t, receive(t, granted, longTTL, "it never looked again").err)
}
