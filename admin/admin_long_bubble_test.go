//go:build long

package admin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
)

// Of two replicas that ask for the first tick of a job at once, the one may restore nodes from what
// the other one was granted for a moment. Whichever runs it, its tick is told.
func TestRunningNamesTheFirstTick(t *testing.T) {
	for range 50 {
		inBubble(t, func(t *testing.T, r *replicas) {
			c, err := admin.New(r.quorum(t, "operator"), admin.WithLogger(r.quiet))
			require.NoError(t, err)
			r.start(t, "a", 7*time.Second)
			r.start(t, "b", 7*time.Second)
			for len(r.began()) == 0 {
				time.Sleep(time.Second)
			}
			run, err := c.Running(t.Context(), "job")
			require.NoError(t, err)
			require.Equal(t, r.began()[0].Truncate(10*time.Second).UnixMilli(), run.Tick.UnixMilli())
		})
	}
}
