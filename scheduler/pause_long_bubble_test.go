//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A leader that is one no more forgets a pause: it asks for no tick that could end it.
func TestFollowerForgetsAPause(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		b := &pauseBook{book: c.book}
		r := c.replica(scheduler.WithTracer(b), scheduler.WithElection("jobs"))
		r.add(t, secondly, func() {})
		r.Start()
		until(3 * time.Second)
		_, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{})
		require.NoError(t, err)
		pass(3 * time.Second)
		require.Len(t, b.heard(), 1)
		c.freeze(0, 1, 2)
		pass(time.Minute)
		told := b.heard()
		require.Len(t, told, 2)
		require.Zero(t, told[1].Pause.Version)
		c.thaw(0, 1, 2)
	})
}
