package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// release is one of a lease with that TTL, which expires with the key.
func release(ttl time.Duration, now clock.Instant) *Request {
	return &Request{Call: callOf(wire.Release, "key"), To: &answers{}, Expires: now.Add(ttl), TTL: ttl}
}

// A failed release is the retries' own: it has been answered. While a node is silent its key does
// not expire.
func TestReleaseThatIsKept(t *testing.T) {
	const now = clock.Instant(1 << 40)
	var s retries
	require.Equal(t, never, s.due())
	for _, silent := range []bool{false, true} {
		r := release(time.Minute, now)
		r.Expires = now + 1
		s.add(r, silent, now)
		again := s.take()[0]
		require.NotSame(t, r, again)
		require.NotSame(t, r.Call, again.Call)
		require.Equal(t, *r.Call, *again.Call)
		require.Nil(t, again.To)
		require.NotNil(t, r.To)
		want := now + 1
		if silent {
			want = now.Add(66 * time.Second)
		}
		require.Equal(t, want, again.Expires)
		require.Equal(t, never, s.due(), "none is left")
	}
	s.add(release(time.Minute, now.Add(-time.Minute)), false, now)
	require.Empty(t, s.take(), "its key has expired")
}
