package redlock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
)

// A process that once had a wrong idea of the time is not behind everybody else for as long as it
// was wrong.
func TestPlaceForgetsAWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := clocks(time.Hour, time.Hour, time.Hour)
		c := newCalls(q)
		wrong := c.join("me", false)
		defer wrong.leave()
		for _, n := range q.nodes {
			n.ahead.Store(1000)
		}
		time.Sleep(time.Second)
		w := c.join("me", false)
		defer w.leave()
		require.Equal(t, uint64(time.Now().UnixMicro())+1, w.number)
	})
}

// Who is told to come later does not come at once, also if its poll is nearly due.
func TestCallForLaterIsNotForNow(t *testing.T) {
	const ttl, later = 10 * time.Second, 400 * time.Millisecond
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := testCalls()
			c.q.clock, c.q.done = clock.New(), make(chan struct{})
			w := c.join("me", false)
			defer w.leave()
			a := &acquisition{q: c.q, cfg: leaseConfig{ttl: ttl}}
			const called = ttl + ttl/20
			start := time.Now()
			time.AfterFunc(called, func() { call(w, "400 ME a", "400 ME a", "400 ME a") })
			require.True(t, a.sleep(t.Context(), w, ttl+ttl/10))
			require.GreaterOrEqual(t, time.Since(start), called+later)
			require.LessOrEqual(t, time.Since(start), called+later+10*time.Millisecond)
		})
	}
}
