package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
)

// The least of the last seconds counts: a node that is slow for a moment is not far, and one that
// has moved away is, after two spans of time.
func TestRoundTripOfTheLastSeconds(t *testing.T) {
	var trip roundTrip
	at := clock.Instant(1)
	observe := func(took time.Duration) int {
		trip.observe(took, at, 0)
		return trip.batches()
	}
	require.Equal(t, 1, trip.batches(), "nothing is known")
	require.Equal(t, maxInFlight, observe(time.Second))
	require.Equal(t, 2, observe(nearTrip))
	require.Equal(t, 2, observe(time.Second))
	at = at.Add(tripSpan)
	require.Equal(t, 2, observe(time.Second), "the span before counts")
	at = at.Add(tripSpan)
	require.Equal(t, maxInFlight, observe(time.Second))
	require.Equal(t, 1, observe(nearTrip-1))
}
