package redlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A timer that fires while an extension moves the deadline finds it moved: the lease goes on, and
// ends when it has to.
func TestTimerThatWasOvertakenByAnExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQuorum(1)
		q.done, q.leases = make(chan struct{}), make(map[*holding]struct{})
		q.extender = newExtender(q)
		cfg, err := q.cfg.forLease([]LeaseOption{WithoutAutoExtend()})
		require.NoError(t, err)
		l := newLease(context.Background(), q, &attempt{keys: &wire.Keys{Name: "k"}, cfg: cfg}, 1, q.clock.Now(), q.clock.Now())
		l.expire()
		require.NoError(t, l.Err(), "its deadline is still to come")
		time.Sleep(l.TTL())
		synctest.Wait()
		require.ErrorIs(t, context.Cause(l.Context()), ErrLost, "the timer is set again")
	})
}
