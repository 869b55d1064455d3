package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Who asks a lease to extend itself after its end gets an error, and puts no key in the way of the
// next holder.
func TestExtendOfAnEndedLeaseSetsNoKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(t *testing.T, l *redlock.Lease)
		err  error
	}{
		{"released", func(t *testing.T, l *redlock.Lease) { require.NoError(t, l.Release(t.Context())) }, redlock.ErrReleased},
		{"lapsed", func(*testing.T, *redlock.Lease) { time.Sleep(ttl) }, redlock.ErrLost},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				l := acquire(t, open(t, fleet), redlock.WithoutAutoExtend())
				test.end(t, l)
				for range 2 {
					require.ErrorIs(t, l.Extend(t.Context()), test.err)
					synctest.Wait()
					for i, n := range fleet.Nodes() {
						_, held := n.Get("tenure:{key}")
						require.False(t, held, "node %d has the key again", i)
					}
				}
			})
		})
	}
}
