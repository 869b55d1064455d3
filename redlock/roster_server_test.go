package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

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
