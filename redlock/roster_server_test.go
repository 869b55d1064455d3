package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

var fleetKeys atomic.Int64

// fleetOf is replicas of one list that hold a lease each.
func fleetOf(t *testing.T, urls []string, n int, opts ...redlock.Option) (replicas []*redlock.Quorum, held []*redlock.Lease) {
	t.Helper()
	for i := range n {
		q := gatedURLs(t, urls, append([]redlock.Option{redlock.WithTTL(longTTL), redlock.WithIdentity(fmt.Sprint("replica ", i))}, opts...)...)
		l, err := tryUntilAnswered(t, q, fmt.Sprint("key of a replica ", fleetKeys.Add(1)))
		require.NoError(t, err)
		replicas, held = append(replicas, q), append(held, l)
	}
	return replicas, held
}

// Behind a balancer that keeps a client with its server, the second client that finds another one
// counts nothing from it.
func TestBalancerByClient(t *testing.T) {
	t.Parallel()
	s := startAged(t, 4)
	way := startDetour(t, s.Node(0).Addr())
	urls := []string{"valkey://" + way.Addr().String(), s.Node(1).URL(), s.Node(2).URL()}
	_, held := fleetOf(t, urls, 1)
	way.lead(s.Node(3).Addr())
	q, err := redlock.Open(urls, redlock.WithTTL(longTTL), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	l, err := tryUntilAnswered(t, q, "key")
	require.NoError(t, err, "the other two are a quorum")
	n := q.Nodes(t.Context())[0]
	require.False(t, n.Votes)
	require.Equal(t, string(redlock.ConditionSeveralServers), redlock.ErrorType(n.Err))
	require.ErrorContains(t, n.Err, "replica ")
	exists, err := s.Node(3).Do(t, "EXISTS", "tenure:{key}").AsInt64()
	require.NoError(t, err)
	require.Zero(t, exists)
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, held[0].Err())
}

// A tool reads who uses a server, and leaves no trace there.
func TestReadRoster(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	client := s.Node(0).Client()
	r, err := redlock.ReadRoster(t.Context(), client, "tenure")
	require.NoError(t, err)
	require.Empty(t, r, "nobody uses it")
	require.Empty(t, s.Node(0).Keys(t))

	q := gatedURLs(t, s.URLs(), redlock.WithTTL(3*time.Second), redlock.WithClockSkew(time.Second), redlock.WithIdentity("ann"))
	l, err := tryUntilAnswered(t, q, "key")
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
	require.Eventually(t, func() bool {
		r, err = redlock.ReadRoster(t.Context(), client, "tenure")
		return err == nil && len(r) == 1
	}, longTTL, pollTick)
	require.Equal(t, 3*time.Second, r[0].MaxTTL)
	require.Equal(t, time.Second, r[0].Skew)
	require.Equal(t, "ann", r[0].By)
	require.Empty(t, r[0].Refused)
	require.ElementsMatch(t, []string{s.Node(0).Addr(), s.Node(1).Addr(), s.Node(2).Addr()}, r[0].Names)
	require.NoError(t, q.Healthy())
	other := gatedURLs(t, s.three(0), redlock.WithIdentity("bob"))
	_, err = other.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.Eventually(t, func() bool {
		r, err = redlock.ReadRoster(t.Context(), client, "tenure")
		return err == nil && len(r) == 2
	}, longTTL, pollTick)
	require.Equal(t, "bob", r[1].By)
	require.Equal(t, redlock.ConditionAnotherList, r[1].Refused)
	require.Equal(t, []string{s.Node(0).Addr()}, r[1].Names)

	r, err = redlock.ReadRoster(t.Context(), client, "another")
	require.NoError(t, err)
	require.Empty(t, r)
	require.NoError(t, s.Node(0).Do(t, "SET", "foreign:roster", "x").Error())
	_, err = redlock.ReadRoster(t.Context(), client, "foreign")
	require.ErrorContains(t, err, "WRONGTYPE")
	var none context.Context
	_, err = redlock.ReadRoster(none, client, "tenure")
	var option *redlock.OptionError
	require.ErrorAs(t, err, &option)
}

// The advice is what the text of an error has in parentheses.
func TestAdviceOfErrors(t *testing.T) {
	t.Parallel()
	require.Empty(t, redlock.Advice(nil))
	require.Empty(t, redlock.Advice(errors.New("x")))
	known := &redlock.ConditionError{Condition: redlock.Condition(wire.Evicting)}
	require.Contains(t, redlock.Advice(known), "noeviction")
	require.Contains(t, known.Error(), "("+redlock.Advice(known)+")")
	require.Equal(t, redlock.Advice(known), redlock.Advice(&redlock.NodeError{Node: "a", Op: redlock.OpObserve, Err: known}))
	q := gatedURLs(t, []string{"valkey://nowhere.invalid"})
	n := q.Nodes(t.Context())[0]
	require.Error(t, n.Err)
	if advice := redlock.Advice(n.Err); advice != "" { // a resolver that is slow says nothing yet
		require.Contains(t, n.Err.Error(), "("+advice+")")
	}
}
