package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A tool reads who uses a server, and leaves no trace there.
func TestReadMembers(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	client := s.Node(0).Client()
	m, err := redlock.ReadMembers(t.Context(), client, "tenure")
	require.NoError(t, err)
	require.Equal(t, redlock.Members{}, m, "nobody uses it")
	require.Empty(t, s.Node(0).Keys(t))

	q := gatedURLs(t, s.URLs(), redlock.WithTTL(3*time.Second), redlock.WithClockSkew(time.Second), redlock.WithIdentity("ann"))
	require.Eventually(t, func() bool {
		m, err = redlock.ReadMembers(t.Context(), client, "tenure")
		return err == nil && len(m.Servers) == 3
	}, longTTL, pollTick)
	require.Equal(t, 3, m.Nodes)
	require.Equal(t, 3*time.Second, m.MaxTTL)
	require.Equal(t, time.Second, m.Skew)
	var at []string
	for _, server := range m.Servers {
		require.Equal(t, "ann", server.By)
		require.Len(t, server.ID, 40)
		require.Less(t, server.Age, longTTL)
		require.False(t, server.Gone)
		at = append(at, server.Address)
	}
	require.ElementsMatch(t, []string{s.Node(0).Addr(), s.Node(1).Addr(), s.Node(2).Addr()}, at)
	require.NoError(t, q.Healthy())
	m, err = redlock.ReadMembers(t.Context(), client, "another")
	require.NoError(t, err)
	require.Empty(t, m)

	for _, foreign := range []string{"x", "2 3 0 0 0 0 0 0 - -", "1 x 0 0 0 0 0 0 - -"} {
		require.NoError(t, s.Node(0).Do(t, "SET", "foreign:members", foreign).Error())
		_, err = redlock.ReadMembers(t.Context(), client, "foreign")
		require.ErrorContains(t, err, "something else")
	}
	require.NoError(t, s.Node(0).Do(t, "DEL", "foreign:members").Error())
	require.NoError(t, s.Node(0).Do(t, "LPUSH", "foreign:members", "x").Error())
	_, err = redlock.ReadMembers(t.Context(), client, "foreign")
	require.ErrorContains(t, err, "WRONGTYPE")
	var none context.Context
	_, err = redlock.ReadMembers(none, client, "tenure")
	var option *redlock.OptionError
	require.ErrorAs(t, err, &option)
}

// The advice is what the text of an error has in parentheses.
func TestAdviceOfErrors(t *testing.T) {
	t.Parallel()
	require.Empty(t, redlock.Advice(nil))
	require.Empty(t, redlock.Advice(errors.New("x")))
	known := &redlock.ConditionError{Condition: redlock.ConditionEvicting}
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
