package redlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A deferred Release may stand before the check of the error, and what is no lease is never taken
// for one that is held.
func TestNoLeaseIsHarmless(t *testing.T) {
	for name, l := range map[string]*redlock.Lease{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			defer func() { require.NoError(t, l.Release(t.Context())) }()
			require.NoError(t, l.Release(t.Context()))
			require.ErrorIs(t, l.Extend(t.Context()), redlock.ErrNotHeld)
			require.ErrorIs(t, l.Err(), redlock.ErrNotHeld)
			require.Equal(t, "not_held", redlock.ErrorType(l.Err()))
			require.ErrorIs(t, context.Cause(l.Context()), redlock.ErrNotHeld)
			require.True(t, l.Deadline().IsZero())
			require.Empty(t, l.Key())
			require.Empty(t, l.Identity())
			require.Zero(t, l.TTL())
			require.Zero(t, l.FencingToken())
			l.StopExtending()
		})
	}
}

// The same goes for a deferred Close.
func TestNoQuorumIsHarmless(t *testing.T) {
	for name, q := range map[string]*redlock.Quorum{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			defer func() { require.NoError(t, q.Close()) }()
			require.NoError(t, q.Close())
			_, err := q.TryAcquire(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrClosed)
			_, err = q.Acquire(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrClosed)
			_, err = q.Holder(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrClosed)
			require.ErrorIs(t, q.Validate("key"), redlock.ErrClosed)
			require.ErrorIs(t, q.Healthy(), redlock.ErrClosed)
			require.Empty(t, q.Nodes(t.Context()))
			require.Empty(t, q.Identity())
			require.Empty(t, q.NewIdentity())
		})
	}
}
