//go:build long

package scheduler_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

// Orders that are none, and too many of them, take neither goroutines nor memory that stay.
func TestHostileOrders(t *testing.T) {
	alone(t, func(t *testing.T, c *cluster) {
		r, hostile := c.named("a"), c.named("hostile")
		r.add(t, never, func() { time.Sleep(100 * time.Millisecond) })
		r.Start()
		until(5 * time.Second)
		hostile.order(t, bulletin.Order{ID: "done", Kind: bulletin.RunNow, Target: "job"})
		until(10 * time.Second)
		require.Len(t, hostile.answers(t, "done"), 1)
		before, most := runtime.NumGoroutine(), 0
		for i := range 3000 {
			text := []string{"", "{", `{"v":1,"id":"x","kind":"run_now","target":"job","within":-1}`, `{"v":-1}`, "[[[[", `{"v":1,"id":"y","kind":"cancel","target":"job","number":1,"within":8000000000000}`}[i%6]
			entries := []redlock.Entry{{Journal: bulletin.Orders, Text: text + fmt.Sprintf("%*s", i%50, ""), Most: 400, Keep: time.Hour}}
			if e, ok := (bulletin.Order{ID: "done", Kind: bulletin.RunNow, Target: "job", By: "x", Within: time.Hour.Milliseconds()}).Entry(); ok {
				entries = append(entries, e)
			}
			_, err := hostile.q.Board().Post(t.Context(), nil, entries)
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
			most = max(most, runtime.NumGoroutine())
		}
		require.Less(t, most, before+200)
		pass(30 * time.Second)
		require.LessOrEqual(t, runtime.NumGoroutine(), before+20)
		require.Len(t, c.book.ticks(), 1)
	})
}
