//go:build long

package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
)

// Whichever replica takes an order, its refusal names the one that runs the job.
func TestRefusalNamesWhoRunsTheJob(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.named("a")
		a.add(t, never, func() { time.Sleep(30 * time.Second) })
		a.Start()
		until(3 * time.Second)
		a.order(t, bulletin.Order{ID: "first", Kind: bulletin.RunNow, Target: "job"})
		until(5 * time.Second)
		require.Equal(t, bulletin.Done, a.answers(t, "first")[0].Result)
		for _, name := range []string{"b", "c"} {
			r := c.named(name)
			r.add(t, never, func() {})
			r.Start()
		}
		until(8 * time.Second)
		takers := make(map[string]bool)
		var answers []bulletin.Order
		for i := range 10 {
			id := fmt.Sprint(i)
			a.order(t, bulletin.Order{ID: id, Kind: bulletin.RunNow, Target: "job"})
			pass(time.Second)
			answers = append(answers, a.answers(t, id)...)
		}
		until(40 * time.Second) // the task returns
		require.Len(t, answers, 10)
		for _, answer := range answers {
			require.Equal(t, bulletin.Refused, answer.Result)
			require.Equal(t, "overlap", answer.Detail)
			require.NotNil(t, answer.Run)
			require.Equal(t, "a", answer.Run.By)
			takers[answer.By] = true
		}
		require.Greater(t, len(takers), 1, "they take turns")
		require.Len(t, c.book.ticks(), 1)
	})
}
