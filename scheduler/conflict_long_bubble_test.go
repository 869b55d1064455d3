//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// Replicas that differ in the zone, the schedule or the program are told of, once each; that
// "02:30" is run twice was silent.
func TestConflictIsTold(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, test := range []struct {
		name       string
		a, b       gocron.JobDefinition
		zone       *time.Location
		task       func()
		opts       []scheduler.Option
		own, other string // of a, without the program
	}{
		{"zone", minutely, minutely, berlin, func() {}, nil, "* * * * *; UTC", "* * * * *; Europe/Berlin"},
		{"schedule", minutely, gocron.CronJob("*/2 * * * *", false), time.UTC, func() {}, nil, "* * * * *; UTC", "*/2 * * * *; UTC"},
		{"interval", gocron.DurationJob(time.Minute), gocron.DurationJob(90 * time.Second), time.UTC, func() {}, nil, "every 1m0s", "every 1m30s"},
		// Who does not get the lease has no label from that, and asks.
		{"long runs", minutely, minutely, berlin, func() { time.Sleep(30 * time.Second) }, nil, "* * * * *; UTC", "* * * * *; Europe/Berlin"},
		{"election", minutely, minutely, berlin, func() {}, []scheduler.Option{scheduler.WithElection("jobs")}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a := c.party("a", append(test.opts, ahead(100*time.Millisecond))...)
				a.add(t, test.a, test.task)
				a.Start()
				time.Sleep(2 * time.Second)
				b := c.party("b", append(test.opts, scheduler.WithLocation(test.zone))...)
				b.add(t, test.b, test.task)
				b.Start()
				until(5*time.Minute - 15*time.Second)
				require.Empty(t, a.warnings(), "it may be a rollout")
				require.Empty(t, b.warnings(), "it may be a rollout")
				require.Empty(t, b.Conflicts())
				until(20*time.Minute + 45*time.Second)
				told := b.tracer.count()
				require.NotZero(t, told)
				until(30*time.Minute + 45*time.Second)
				require.Greater(t, b.tracer.count(), told, "as long as it lasts")
				require.Len(t, b.warnings(), 1, "once")
				require.Contains(t, b.warnings()[0], "level=WARN")
				require.Contains(t, b.warnings()[0], "redlock.WithPrefix")
				found := b.Conflicts()
				require.Len(t, found, 1)
				require.Equal(t, "job", found[0].Job)
				require.NotEqual(t, found[0].Own, found[0].Other)
				require.True(t, found[0].Tick.After(at(19*60)), "%v", found[0].Tick)
				if test.own != "" {
					require.Contains(t, found[0].Other, "; "+test.own)
					require.Contains(t, found[0].Own, "; "+test.other)
				}
			})
		})
	}
}

// A rollout of less than five minutes, and replicas that agree, are no conflict.
func TestRolloutIsNoConflict(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func(name string, d gocron.JobDefinition) *party {
			p := c.party(name)
			p.add(t, d, func() {})
			p.Start()
			return p
		}
		version2 := gocron.CronJob("* * * * 0-6", false)
		old := []*party{start("a1", minutely), start("b1", minutely)}
		until(20*time.Minute + 45*time.Second)
		next := []*party{start("a2", version2)}
		until(22 * time.Minute)
		require.NoError(t, old[0].Shutdown())
		next = append(next, start("b2", version2))
		until(24 * time.Minute)
		require.NoError(t, old[1].Shutdown())
		until(49*time.Minute + 30*time.Second)
		for _, p := range append(old, next...) {
			require.Empty(t, p.warnings())
			require.Empty(t, p.Conflicts())
			require.Zero(t, p.tracer.count())
		}
		require.Len(t, c.book.ticks(), 49, "each minute")
	})
}
