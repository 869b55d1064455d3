//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// Whatever made ticks late, the policy says which are run.
func TestCatchUp(t *testing.T) {
	causes := map[string]func(c *cluster, start func()){
		"no nodes": func(c *cluster, _ func()) {
			c.freeze()
			until(at(57))
			c.thaw()
		},
		"no replicas": func(c *cluster, start func()) {
			for _, r := range c.replicas {
				c.stop(r)
			}
			until(at(57))
			start()
		},
		"jobs stopped": func(c *cluster, _ func()) {
			for _, r := range c.replicas {
				require.NoError(c.t, r.StopJobs())
			}
			until(at(57))
			for _, r := range c.replicas {
				r.Start()
			}
		},
	}
	for _, test := range []struct {
		name   string
		window time.Duration
		policy scheduler.CatchUp
		late   []int
	}{
		{"none", 0, scheduler.CatchUpNone, nil},
		{"latest", time.Minute, scheduler.CatchUpLatest, []int{50}},
		{"all", time.Minute, scheduler.CatchUpAll, []int{30, 40, 50}},
		{"all, window passed", 12 * time.Second, scheduler.CatchUpAll, []int{50}},
	} {
		for cause, come := range causes {
			for _, mode := range modes {
				if mode.opts != nil && test.policy != scheduler.CatchUpAll {
					continue
				}
				t.Run(test.name+", "+cause+", "+mode.name, func(t *testing.T) {
					inCluster(t, func(t *testing.T, c *cluster) {
						start := func() {
							for range 2 {
								r := c.replica(append(mode.opts, quiet, jobOptions(within(test.window, test.policy)))...)
								r.add(t, tenSecondly, func() { time.Sleep(100 * time.Millisecond) })
								r.Start()
							}
						}
						start()
						until(at(25))
						come(c, start)
						until(at(71))
						require.Equal(t, append(append([]int{10, 20}, test.late...), 60, 70), c.book.seconds())
						require.Equal(t, 1, c.book.most)
						for _, run := range c.book.runs {
							late := run.Due.After(at(20)) && run.Due.Before(at(60))
							require.Equal(t, map[bool]string{true: "late", false: "on_time"}[late], run.Why)
						}
						left := 3 - len(test.late)
						reasons := c.book.reasons()
						require.Equal(t, min(left, 1), min(reasons[scheduler.SkipMissed]+reasons[scheduler.SkipSuperseded], 1), "%v", c.book.skips)
					})
				})
			}
		}
	}
}
