package redlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// requireFreed demands that nobody has the key any more.
func requireFreed(t *testing.T, q *redlock.Quorum) {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
}

func TestDoHoldsTheKeyWhileItWorks(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		type key struct{}
		var kept context.Context
		err := q.Do(context.WithValue(t.Context(), key{}, "value"), "key", func(ctx context.Context, l *redlock.Lease) error {
			kept = ctx
			time.Sleep(3 * ttl)
			require.NoError(t, ctx.Err())
			require.NoError(t, l.Err())
			require.Equal(t, "value", ctx.Value(key{}))
			require.Equal(t, "payload", mustHolder(t, q).Payload)
			return nil
		}, redlock.WithPayload("payload"))
		require.NoError(t, err)
		require.ErrorIs(t, context.Cause(kept), redlock.ErrReleased)
		requireFreed(t, q)
	})
}

func mustHolder(t *testing.T, q *redlock.Quorum) redlock.Holder {
	t.Helper()
	h, err := q.Holder(t.Context(), "key")
	require.NoError(t, err)
	return h
}

func TestDoEndsWithTheCaller(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(ttl, func() { cancel(stopped) })
		err := q.Do(ctx, "key", func(ctx context.Context, l *redlock.Lease) error {
			<-ctx.Done()
			require.NoError(t, l.Err(), "until it returns")
			return context.Cause(ctx)
		})
		require.Equal(t, stopped, err)
		requireFreed(t, q)
	})
}

func TestDoEndsWithTheLease(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		var lost *redlock.LostError
		for _, told := range []bool{false, true} {
			err := q.Do(t.Context(), "key", func(ctx context.Context, _ *redlock.Lease) error {
				for _, n := range fleet.Nodes() {
					require.NoError(t, n.Freeze())
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				require.ErrorAs(t, context.Cause(ctx), &lost, "its context goes on")
				for _, n := range fleet.Nodes() {
					require.NoError(t, n.Thaw())
				}
				if told {
					return context.Cause(ctx)
				}
				return nil
			})
			require.Equal(t, error(lost), err, "once, and whatever it returned")
			time.Sleep(time.Minute)
			requireFreed(t, q)
		}
	})
}

func TestDoReleasesWhateverHappens(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		failed := errors.New("failed")
		require.Equal(t, failed, q.Do(t.Context(), "key", func(context.Context, *redlock.Lease) error { return failed }))
		requireFreed(t, q)

		require.PanicsWithValue(t, "boom", func() {
			_ = q.Do(t.Context(), "key", func(context.Context, *redlock.Lease) error { panic("boom") })
		})
		requireFreed(t, q)

		require.NoError(t, q.Do(t.Context(), "key", func(ctx context.Context, l *redlock.Lease) error { return l.Release(ctx) }), "it may release it itself")
		requireFreed(t, q)

		for _, own := range []error{nil, failed} {
			err := q.Do(t.Context(), "key", func(context.Context, *redlock.Lease) error {
				require.NoError(t, fleet.Node(0).Kill())
				require.NoError(t, fleet.Node(1).Kill())
				return own
			})
			var unsure *redlock.QuorumError
			require.ErrorAs(t, err, &unsure)
			require.Equal(t, redlock.OpRelease, unsure.Op)
			if own != nil {
				require.ErrorIs(t, err, own)
			}
			require.NoError(t, fleet.Node(0).Restart(true))
			require.NoError(t, fleet.Node(1).Restart(true))
			time.Sleep(time.Minute)
			synctest.Wait()
			requireFreed(t, q)
		}
	})
}

func TestDoWithoutALeaseCallsNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		acquire(t, open(t, fleet))
		none := func(context.Context, *redlock.Lease) error { panic("called") }
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		require.ErrorIs(t, q.Do(ctx, "key", none), context.DeadlineExceeded)
		var wrong *redlock.OptionError
		require.ErrorAs(t, q.Do(t.Context(), "", none), &wrong)
		_, err := q.Holder(t.Context(), "")
		require.ErrorAs(t, err, &wrong)
	})
}
