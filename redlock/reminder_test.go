package redlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
)

// What lasts is said after 1, 3, 7, 15, 31 and 63 minutes, and then once an hour.
func TestRemindersGrowRare(t *testing.T) {
	var r reminder
	r.begin(0)
	var said []time.Duration
	for now := clock.Instant(0); now < clock.Instant(4*time.Hour); now = now.Add(time.Second) {
		if r.due(now) {
			said = append(said, r.lasted(now))
		}
	}
	require.Equal(t, []time.Duration{
		time.Minute, 3 * time.Minute, 7 * time.Minute, 15 * time.Minute, 31 * time.Minute, 63 * time.Minute, 123 * time.Minute, 183 * time.Minute,
	}, said)
}
