//go:build long

package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// Update, RemoveJob and RemoveByTags while a run goes on, and while a tick waits for it.
func TestJobsThatAreTakenAwayWhileTheyRun(t *testing.T) {
	for name, take := range map[string]func(r *replica, id uuid.UUID) error{
		"RemoveJob":    func(r *replica, id uuid.UUID) error { return r.RemoveJob(id) },
		"RemoveByTags": func(r *replica, _ uuid.UUID) error { r.RemoveByTags("x", "tag"); return nil },
		"Update": func(r *replica, id uuid.UUID) error {
			_, err := r.Update(id, gocron.CronJob("0 0 1 1 *", false), scheduler.NewTask(func() {}), gocron.WithName("job"))
			return err
		},
		"Update with another name and identifier": func(r *replica, id uuid.UUID) error {
			_, err := r.Update(id, gocron.CronJob("0 0 1 1 *", false), scheduler.NewTask(func() {}), gocron.WithName("other"), gocron.WithIdentifier(uuid.New()))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica(scheduler.WithOverlap(scheduler.OverlapQueue))
				var held error
				j := r.add(t, tenSecondly, func(ctx context.Context) {
					<-ctx.Done()
					run, _ := scheduler.RunFromContext(ctx)
					time.Sleep(2 * ttl)
					held = run.Lease().Err()
				}, gocron.WithTags("tag"))
				r.Start()
				until(21 * time.Second) // 10 s runs, 20 s waits
				require.NoError(t, take(r, j.ID()))
				require.Equal(t, 1, c.book.reasons()[scheduler.SkipStopped], "20 s is given up")
				until(35 * time.Second)
				require.Equal(t, []int{10}, c.book.tickSeconds())
				require.Len(t, c.book.ends, 1)
				require.NoError(t, held)
			})
		})
	}
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		require.ErrorIs(t, r.RemoveJob(uuid.New()), gocron.ErrJobNotFound)
		r.RemoveByTags("nobody's")
	})
}

// Shutdown gives up what waits, at every moment of a late run.
func TestShutdownWhileATickWaits(t *testing.T) {
	for ms := range 12 {
		alone(t, func(t *testing.T, c *cluster) {
			a := c.replica(scheduler.WithOverlap(scheduler.OverlapQueue))
			b := c.replica(scheduler.WithOverlap(scheduler.OverlapQueue))
			for _, r := range []*replica{a, b} {
				r.add(t, tenSecondly, func(ctx context.Context) { nap(ctx, 11*time.Second) })
				r.Start()
			}
			until(21*time.Second + time.Duration(ms-6)*time.Millisecond/5)
			require.NoError(t, a.Shutdown())
			until(29 * time.Second)
			require.Equal(t, 1, c.book.most)
			require.NoError(t, b.Shutdown())
			require.Equal(t, len(c.book.runs), len(c.book.ends))
		})
	}
}
