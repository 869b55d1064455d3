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

// Pauses double, to a second at most, and to a tenth of the TTL. All are sent when the first one is
// due.
func TestPausesOfReleases(t *testing.T) {
	const now = clock.Instant(1 << 40)
	for ttl, want := range map[time.Duration][]time.Duration{
		time.Minute:            {MinPause, 2 * MinPause, 4 * MinPause, 8 * MinPause, 16 * MinPause, MaxPause, MaxPause},
		time.Second:            {MinPause, time.Second / 10, time.Second / 10},
		100 * time.Millisecond: {10 * time.Millisecond, 10 * time.Millisecond},
	} {
		var s retries
		r := release(ttl, now)
		for _, pause := range want {
			s.add(r, false, now)
			require.InDelta(t, pause, s.due().Sub(now), 0.2*float64(pause), "a TTL of %v", ttl)
			r = s.take()[0]
			require.Equal(t, pause, r.pause)
		}
	}
	var s retries
	slow, quick := release(time.Minute, now), release(100*time.Millisecond, now)
	s.add(quick, false, now)
	at := s.due()
	s.add(slow, false, now)
	require.Equal(t, at, s.due())
	require.Len(t, s.take(), 2)
	s.add(slow, false, now)
	s.add(quick, false, now)
	require.Less(t, s.due(), now.Add(MinPause/2))
}

func TestReleasesThatAreKeptAreBounded(t *testing.T) {
	const now = clock.Instant(1 << 40)
	s := retries{all: make([]*Request, maxQueue-1)}
	for range 3 {
		s.add(release(time.Minute, now), false, now)
	}
	require.Len(t, s.take(), maxQueue)
}
