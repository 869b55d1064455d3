package scheduler_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// An order to run is carried out once, however often it is heard and by how many.
func TestOrderToRunIsCarriedOutOnce(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var replicas []*replica
				for _, name := range []string{"a", "b", "c"} {
					r := c.named(name, mode.opts...)
					r.add(t, never, func() { time.Sleep(100 * time.Millisecond) })
					r.Start()
					replicas = append(replicas, r)
					time.Sleep(time.Second)
				}
				until(10 * time.Second)
				for i := range 5 {
					replicas[i%3].order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job"})
					time.Sleep(time.Duration(i) * 300 * time.Millisecond)
				}
				until(20 * time.Second)
				require.Len(t, c.book.ticks(), 1)
				run, _ := c.book.run(0)
				require.True(t, run.Tick.IsZero())
				answers := replicas[0].answers(t, "one")
				require.NotEmpty(t, answers)
				require.Equal(t, bulletin.Done, answers[0].Result)
				require.Equal(t, run.FencingToken(), answers[0].Run.Token)
				require.Equal(t, run.Lease().Identity(), answers[0].Run.By)
				require.NotZero(t, answers[0].Run.Began)
				runs := replicas[0].runsTold(t)
				require.Len(t, runs, 1)
				require.Equal(t, "one", runs[0].Order)
				require.Zero(t, runs[0].Tick)
				if mode.opts != nil {
					require.Equal(t, "a", runs[0].By, "it leads")
				}
			})
		})
	}
}

// An order to run a job of which a run goes on is refused, and the answer names who runs it; a
// paused job is run.
func TestOrderToRunIsRefusedWhileARunGoesOn(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, never, func() { time.Sleep(5 * time.Second) })
		r.Start()
		until(5 * time.Second)
		_, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{})
		require.NoError(t, err)
		began := len(c.book.ticks())
		r.order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job"})
		pass(time.Second)
		require.Len(t, c.book.ticks(), began+1)
		r.order(t, bulletin.Order{ID: "two", Kind: bulletin.RunNow, Target: "job"})
		pass(time.Second)
		answers := r.answers(t, "two")
		require.Len(t, answers, 1)
		require.Equal(t, bulletin.Refused, answers[0].Result)
		require.Equal(t, string(scheduler.SkipOverlap), answers[0].Detail)
		require.Equal(t, "a", answers[0].Run.By)
		require.Len(t, c.book.ticks(), began+1)
	})
}

// An order that cannot be claimed is claimed again for as long as it is wanted, and no longer.
func TestOrderIsClaimedWhileItIsWanted(t *testing.T) {
	for name, test := range map[string]struct {
		within time.Duration
		runs   int
	}{"wanted": {time.Minute, 1}, "not wanted any more": {5 * time.Second, 0}} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a")
				r.add(t, never, func() {})
				r.Start()
				until(5 * time.Second)
				r.order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job", Within: test.within.Milliseconds()})
				c.freeze(0, 1, 2)
				until(20 * time.Second)
				require.Empty(t, c.book.ticks())
				c.thaw(0, 1, 2)
				until(60 * time.Second)
				require.Len(t, c.book.ticks(), test.runs)
				require.Len(t, r.answers(t, "one"), test.runs)
			})
		})
	}
}

// An order that its giver has given up is carried out by nobody.
func TestOrderThatItsGiverClaimed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r, giver := c.named("a"), c.named("giver")
		r.add(t, never, func() {})
		r.Start()
		until(5 * time.Second)
		require.NoError(t, orders.Claim(t.Context(), giver.q, "one"))
		giver.order(t, bulletin.Order{ID: "one", Kind: bulletin.RunNow, Target: "job"})
		until(15 * time.Second)
		require.Empty(t, c.book.ticks())
		require.Empty(t, r.answers(t, "one"))
	})
}

// What a replica cannot carry out it does not claim.
func TestOrderForNobodyIsNotClaimed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		leader, follower := c.named("leader", scheduler.WithElection("jobs")), c.named("follower", scheduler.WithElection("jobs"))
		leader.Start()
		until(5 * time.Second)
		follower.add(t, never, func() {})
		follower.Start()
		until(10 * time.Second)
		leader.order(t, bulletin.Order{ID: "unknown", Kind: bulletin.RunNow, Target: "nothing"})
		leader.order(t, bulletin.Order{ID: "follower's", Kind: bulletin.RunNow, Target: "job"})
		until(20 * time.Second)
		require.Empty(t, c.book.ticks())
		for _, id := range []string{"unknown", "follower's"} {
			leader.unclaimed(t, id)
			require.Empty(t, leader.answers(t, id))
		}
	})
}

// A job that runs everywhere is run by no order, nor one that was removed.
func TestOrderForAJobWithoutALease(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		var ran atomic.Int64
		_, err := r.NewJob(never, scheduler.NewTask(func() { ran.Add(1) }), gocron.WithName("everywhere"), gocron.WithDisabledDistributedJobLocker(true))
		require.NoError(t, err)
		gone := r.add(t, never, func() { ran.Add(1) })
		r.Start()
		until(3 * time.Second)
		require.NoError(t, r.RemoveJob(gone.ID()))
		until(5 * time.Second)
		r.order(t, bulletin.Order{ID: "everywhere", Kind: bulletin.RunNow, Target: "everywhere"})
		r.order(t, bulletin.Order{ID: "gone", Kind: bulletin.RunNow, Target: "job"})
		until(10 * time.Second)
		require.Zero(t, ran.Load())
		for _, id := range []string{"everywhere", "gone"} {
			r.unclaimed(t, id)
			require.Empty(t, r.answers(t, id))
		}
	})
}
