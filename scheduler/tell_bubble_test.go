package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// An error that says that it wraps another, and wraps none, is told by its own type.
func TestErrorThatWrapsNothingIsTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		var none error
		r.add(t, tenSecondly, func() error { return fmt.Errorf("it: %w", none) })
		r.Start()
		until(15 * time.Second)
		require.Equal(t, "*fmt.wrapError", r.runsTold(t)[0].Error)
	})
}

// A run whose lease was lost is told as that, whatever its task returned, and whether it was
// cancelled or not.
func TestLossIsToldWhateverTheTaskReturned(t *testing.T) {
	for name, err := range map[string]error{"nil": nil, "an error": errors.New("failed")} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a")
				r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(10))), func(ctx context.Context) error {
					c.freeze(0, 1, 2)
					<-ctx.Done()
					c.thaw(0, 1, 2)
					return err
				})
				r.Start()
				until(60 * time.Second)
				told := r.runsTold(t)
				require.Len(t, told, 1)
				require.Equal(t, bulletin.Lost, told[0].Outcome)
				require.Equal(t, "lost_deadline", told[0].Error)
			})
		})
	}
}

// A definition that no node has heard is told with the next report.
func TestDefinitionOfWhichNoNodeHasHeardIsToldAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, never, func() {})
		c.freeze(0, 1, 2, 3, 4)
		r.Start()
		until(5 * time.Second)
		for i := range 5 {
			require.NoError(t, c.fleet.Node(i).Restart(false)) // what was sent to it is gone
		}
		until(30 * time.Second)
		require.Len(t, r.definitions(t), 1)
	})
}

// What is switched off is not told or taken, by the jobs and by the election, and all else is.
func TestSwitchesAreTheirOwn(t *testing.T) {
	type told struct{ process, job, election, runs, skips, terms, run, resign bool }
	for name, test := range map[string]struct {
		opts []scheduler.Option
		want told
	}{
		"all":             {nil, told{process: true, job: true, election: true, runs: true, skips: true, terms: true, run: true, resign: true}},
		"without card":    {[]scheduler.Option{scheduler.WithoutCard()}, told{runs: true, terms: true, run: true, resign: true}},
		"without history": {[]scheduler.Option{scheduler.WithoutHistory()}, told{process: true, job: true, election: true, run: true, resign: true}},
		"without orders":  {[]scheduler.Option{scheduler.WithoutOrders()}, told{process: true, job: true, election: true, runs: true, skips: true, terms: true}},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.named("a", append(test.opts, scheduler.WithElection("jobs"))...)
				r.add(t, tenSecondly, func() {})
				r.Start()
				until(15 * time.Second)
				runs := len(c.book.ticks())
				r.order(t, bulletin.Order{ID: "run", Kind: bulletin.RunNow, Target: "job"})
				until(18 * time.Second)
				got := told{run: len(c.book.ticks()) > runs}
				_, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{By: "Ann"})
				require.NoError(t, err)
				until(45 * time.Second)
				for _, p := range r.processes(t) {
					got.process = got.process || len(p.Jobs) > 0
					got.election = got.election || len(p.Elections) > 0
				}
				_, got.job = r.definitions(t)["job"]
				got.runs = len(r.runsTold(t)) > 0
				skips, _ := r.skipsTold(t)
				got.skips = len(skips) > 0
				terms, err := r.q.Board().Journal(t.Context(), bulletin.Terms+"/jobs", 10)
				require.NoError(t, err)
				got.terms = len(terms) > 0
				h, err := r.q.Holder(t.Context(), elector.KeyPrefix+"jobs")
				require.NoError(t, err)
				r.order(t, bulletin.Order{ID: "resign", Kind: bulletin.Resign, Target: "jobs", Number: h.FencingToken})
				until(55 * time.Second)
				h2, err := r.q.Holder(t.Context(), elector.KeyPrefix+"jobs")
				require.NoError(t, err)
				got.resign = h2.FencingToken != h.FencingToken
				require.Equal(t, test.want, got)
			})
		})
	}
}
