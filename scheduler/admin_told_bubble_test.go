package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// operator is a Client of a process of its own.
func (c *cluster) operator(opts ...admin.Option) *admin.Client {
	q := open(c.t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithIdentity("operator"))
	a, err := admin.New(q, append([]admin.Option{admin.WithActor("ann"), admin.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	require.NoError(c.t, err)
	return a
}

// traced is a book that knows the trace of each run.
type traced struct{ *book }

func (traced) TraceID(context.Context) string { return "4bf92f3577b34da6a3ce929d0e0e4736" }

// How each run ended is told, whatever became of it, with what people look for.
func TestOutcomesOfRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		r := c.replica(scheduler.WithTracer(traced{c.book}))
		var n atomic.Int64
		secret := errors.New("postgres://user:password@host")
		r.add(t, tenSecondly, func(ctx context.Context) error {
			time.Sleep(1500 * time.Millisecond)
			switch n.Add(1) {
			case 2:
				return secret
			case 3:
				panic("a bug")
			case 4:
				for i := range 5 {
					c.fleet.Node(i).FlushAll()
				}
				_ = r.q // its lease is lost when nobody has it
				for i := range 5 {
					require.NoError(t, c.fleet.Node(i).Freeze())
				}
				<-ctx.Done()
				for i := range 5 {
					require.NoError(t, c.fleet.Node(i).Thaw())
				}
				return context.Cause(ctx)
			}
			return nil
		})
		r.Start()
		until(35 * time.Second)
		runs, err := a.Runs(t.Context(), "job", 20)
		require.NoError(t, err)
		require.Len(t, runs, 3)
		for i, want := range []struct {
			outcome admin.Outcome
			err     string
		}{{admin.OutcomePanicked, "panic"}, {admin.OutcomeFailed, "*errors.errorString"}, {admin.OutcomeOK, ""}} {
			run := runs[i]
			require.Equal(t, want.outcome, run.Outcome)
			require.Equal(t, want.err, run.Error)
			require.Equal(t, at((3-i)*10).UnixMilli(), run.Tick.UnixMilli())
			require.Equal(t, 1, run.Attempt)
			require.False(t, run.CatchUp)
			require.Equal(t, 5, run.Sources)
			require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", run.TraceID)
			require.Equal(t, r.q.Identity(), run.Replica)
			require.InDelta(t, run.Tick.UnixMilli(), run.Began.UnixMilli(), 100)
			require.Empty(t, run.Order)
			require.Equal(t, 1500*time.Millisecond, run.Took)
			if i > 0 {
				require.Greater(t, runs[i-1].FencingToken, run.FencingToken)
			}
		}
		until(75 * time.Second)
		runs, err = a.Runs(t.Context(), "job", 20)
		require.NoError(t, err)
		lost := false
		for _, run := range runs {
			lost = lost || run.Outcome == admin.OutcomeLost && run.Tick.UnixMilli() == at(40).UnixMilli()
		}
		require.True(t, lost, "%v", runs)
	})
}

// The texts of errors are told if somebody wants that, and nothing is told if nobody does.
func TestWhatIsToldOfRuns(t *testing.T) {
	for name, test := range map[string]struct {
		opts []scheduler.Option
		runs int
		text string
	}{
		"texts":   {[]scheduler.Option{scheduler.WithErrorTexts()}, 2, "a secret " + strings.Repeat("x", 247)},
		"types":   {nil, 2, "*errors.errorString"},
		"nothing": {[]scheduler.Option{scheduler.WithoutHistory()}, 0, ""},
		"no card": {[]scheduler.Option{scheduler.WithoutCard()}, 2, "*errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a := c.operator()
				r := c.replica(test.opts...)
				r.add(t, tenSecondly, func() error { return errors.New("a secret " + strings.Repeat("x", 1000)) })
				r.Start()
				until(25 * time.Second)
				runs, err := a.Runs(t.Context(), "job", 20)
				require.NoError(t, err)
				require.Len(t, runs, test.runs)
				for _, run := range runs {
					require.Equal(t, test.text, run.Error)
				}
				replicas, err := a.Replicas(t.Context())
				require.NoError(t, err)
				_, err = a.Job(t.Context(), "job")
				if name == "no card" {
					require.Empty(t, replicas)
					require.ErrorIs(t, err, admin.ErrNoJob)
				} else {
					require.Len(t, replicas, 1)
					require.NoError(t, err)
				}
			})
		})
	}
}

// That a run has ended is told with the release of its lease: nodes are asked nothing more.
func TestRunIsToldWithItsRelease(t *testing.T) {
	commands := make(map[bool]int)
	for _, silent := range []bool{false, true} {
		alone(t, func(t *testing.T, c *cluster) {
			opts := []scheduler.Option{scheduler.WithoutCard(), scheduler.WithoutOrders()}
			if silent {
				opts = append(opts, scheduler.WithoutHistory())
			}
			r := c.replica(opts...)
			r.add(t, secondly, func() {})
			r.Start()
			until(10500 * time.Millisecond)
			before, runs := c.fleet.Node(0).Commands(), len(c.book.ticks())
			until(40500 * time.Millisecond)
			require.Equal(t, 30, len(c.book.ticks())-runs)
			commands[silent] = c.fleet.Node(0).Commands() - before
		})
	}
	require.InDelta(t, commands[true], commands[false], 15, "30 runs")
}

// Skips that an operator acts on are told, counted by their reason; those that are as they should
// be are not, nor those of followers.
func TestSkipsOfALeaderAreTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		for _, name := range []string{"a", "b", "c"} {
			r := c.named(name, scheduler.WithElection("jobs"))
			r.add(t, secondly, func() { time.Sleep(2500 * time.Millisecond) })
			r.Start()
		}
		until(10 * time.Second)
		_, err := a.Pause(t.Context(), admin.Job("job"), admin.PauseOptions{Reason: "x"})
		require.NoError(t, err)
		until(60 * time.Second)
		skips, err := a.Skips(t.Context(), "job", 10)
		require.NoError(t, err)
		require.Len(t, skips, 2, "%v", skips)
		require.Equal(t, "paused", skips[0].Reason)
		require.Equal(t, "ann", skips[0].By)
		require.Greater(t, skips[0].Count, 10)
		require.Less(t, skips[0].Count, 55)
		require.Equal(t, "overlap", skips[1].Reason)
		require.Equal(t, skips[0].Replica, skips[1].Replica)
		require.Equal(t, 5, skips[0].Sources)
		require.Less(t, at(60).Sub(skips[0].Tick), 13*time.Second)
	})
}

// What a replica runs is on its card while it does, and the card goes with the replica.
func TestRunningRunsAreTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		r := c.named("a")
		r.add(t, gocron.CronJob("0 * * * * *", true), func() { time.Sleep(25 * time.Second) })
		r.Start()
		running := func() []admin.Run {
			all, err := a.Replicas(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, r.q.Identity(), all[0].Identity)
			require.Equal(t, []string{"job"}, all[0].Jobs)
			return all[0].Running
		}
		until(59 * time.Second)
		require.Empty(t, running())
		until(75 * time.Second)
		require.Len(t, running(), 1)
		now, err := a.Running(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, now.ID(), running()[0].ID())
		require.Equal(t, at(60).UnixMilli(), running()[0].Tick.UnixMilli())
		until(100 * time.Second)
		require.Empty(t, running())
		require.NoError(t, r.StopJobs())
		synctest.Wait()
		all, err := a.Replicas(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)
	})
}
