package elector

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// However often lead fails, the pause grows from the least to the greatest, and is never anything
// else.
func TestBackoffStaysWithinItsBounds(t *testing.T) {
	bounds := []time.Duration{minPause, minPause + 1, time.Second, time.Hour, MaxPause - 1, MaxPause}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i, least := range bounds {
		for _, most := range bounds[i:] {
			e := &Elector{cfg: &config{}}
			require.NoError(t, WithBackoff(least, most).apply(e.cfg))
			before := least
			for failures := range 100 {
				pause := e.backoff(nil, failures)
				require.GreaterOrEqual(t, pause, before)
				require.LessOrEqual(t, pause, min(2*before, most))
				require.NotPanics(t, func() { e.pause(ended, pause) })
				before = pause
			}
			require.Equal(t, most, before)
		}
	}
}
