//go:build long

package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A Scheduler that is stopped while orders come ends in bounded time, and takes none after that.
func TestStopWhileOrdersCome(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator(admin.WithOrderTimeout(2 * time.Second))
		r := c.named("a")
		r.add(t, gocron.CronJob("0 0 1 1 *", false), func() {})
		r.Start()
		until(3 * time.Second)
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = a.RunNow(context.Background(), "job", "")
				}
			}
		}()
		time.Sleep(time.Second)
		for range 3 {
			began := time.Now()
			require.NoError(t, r.StopJobs())
			require.Less(t, time.Since(began), 3*time.Second)
			ran := len(c.book.ticks())
			pass(5 * time.Second)
			require.Len(t, c.book.ticks(), ran)
			r.Start()
			pass(5 * time.Second)
			require.Greater(t, len(c.book.ticks()), ran, "it takes orders again")
		}
		close(stop)
		<-ended
	})
}

// Whatever is told on the channel of orders, a replica does not grow.
func TestStormOfOrders(t *testing.T) {
	alone(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, gocron.CronJob("0 0 1 1 *", false), func(ctx context.Context) { <-ctx.Done() })
		r.Start()
		until(3 * time.Second)
		before := runtime.NumGoroutine()
		for i := range 1000 {
			o := bulletin.Order{ID: fmt.Sprint(i), Kind: bulletin.RunNow, Target: "job", By: "x", Within: 3_600_000}
			e, _ := o.Entry()
			_, err := r.q.Board().Post(t.Context(), nil, []redlock.Entry{e, {Journal: bulletin.Orders, Text: "{", Most: 1, Keep: time.Hour}})
			require.NoError(t, err)
		}
		require.Less(t, runtime.NumGoroutine(), before+60)
		pass(time.Minute)
		require.Len(t, c.book.ticks(), 1)
		require.Less(t, runtime.NumGoroutine(), before+20)
	})
}

// An order to run a job is carried out once, by one replica, on the leader where there is one,
// however often it is heard.
func TestOrderedRun(t *testing.T) {
	for name, opts := range map[string][]scheduler.Option{"anybody": nil, "leader": {scheduler.WithElection("jobs")}} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a := c.operator()
				replicas := make(map[string]*replica)
				for _, name := range []string{"a", "b", "c"} {
					r := c.named(name, opts...)
					replicas[name] = r
					r.add(t, gocron.CronJob("0 0 1 1 *", false), func() { time.Sleep(3 * time.Second) })
					r.Start()
				}
				until(3 * time.Second)
				repeat, err := redlock.Open(c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithLogger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				defer repeat.Close()
				until(6 * time.Second)
				stop, err := repeat.Board().Hear(bulletin.Orders, func(e redlock.Entry) {
					if o, ok := bulletin.ParseOrder(e.Text); ok && o.Result == "" {
						for i := range 5 {
							time.AfterFunc(time.Duration(i*700)*time.Millisecond, func() {
								again := e
								again.Journal, again.Most, again.Keep, again.At = bulletin.Orders, 100, time.Hour, time.Now()
								_, _ = repeat.Board().Post(context.Background(), nil, []redlock.Entry{again})
							})
						}
					}
				})
				require.NoError(t, err)
				until(8 * time.Second)
				for i := range 5 {
					run, err := a.RunNow(t.Context(), "job", fmt.Sprint(i))
					require.NoError(t, err)
					_, err = a.RunNow(t.Context(), "job", "again")
					require.ErrorIs(t, err, admin.ErrRefused)
					require.Equal(t, "overlap", redlock.ErrorType(err))
					require.ErrorContains(t, err, "held by "+run.Replica)
					require.NoError(t, a.Wait(t.Context(), "job"))
					if opts != nil {
						require.NoError(t, replicas[run.Replica].Elector().IsLeader(t.Context()))
					}
					runs, err := a.Runs(t.Context(), "job", 20)
					require.NoError(t, err)
					require.Len(t, runs, i+1)
					require.Equal(t, run.Order, runs[0].Order)
					require.Equal(t, run.FencingToken, runs[0].FencingToken)
					require.Zero(t, runs[0].Tick)
				}
				stop()
				pass(time.Minute)
				require.Len(t, c.book.ticks(), 5)
			})
		})
	}
}

// A run that is cancelled ends, is told so, and is not repeated; no other is.
func TestCancelledRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		log := new(journal)
		r := c.named("a", scheduler.WithDelivery(redlock.AtLeastOnce), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll), scheduler.WithLogger(log.logger()))
		causes := make(chan error, 10)
		r.add(t, gocron.CronJob("0 * * * * *", true), func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				causes <- context.Cause(ctx)
				return ctx.Err()
			case <-time.After(20 * time.Second):
				return nil
			}
		})
		r.Start()
		until(65 * time.Second)
		run, err := a.Running(t.Context(), "job")
		require.NoError(t, err)
		other := run.ID()
		other.FencingToken--
		require.ErrorIs(t, a.Cancel(t.Context(), other, "wrong"), admin.ErrNotRunning)
		e, _ := bulletin.Order{ID: "x", Kind: bulletin.Cancel, Target: "job", Number: other.FencingToken, By: "x", Within: 1000}.Entry()
		_, err = r.q.Board().Post(t.Context(), nil, []redlock.Entry{e})
		require.NoError(t, err)
		pass(time.Second)
		require.Empty(t, causes)
		require.NoError(t, a.Cancel(t.Context(), run.ID(), "too slow"))
		require.NoError(t, a.Wait(t.Context(), "job"))
		require.Len(t, causes, 1)
		var cancelled *scheduler.CancelledError
		cause := <-causes
		require.ErrorAs(t, cause, &cancelled)
		require.ErrorIs(t, cause, scheduler.ErrCancelled)
		require.Equal(t, scheduler.CancelledError{Job: "job", By: "ann", Why: "too slow"}, *cancelled)
		require.EqualError(t, cancelled, `scheduler: the run of job "job" was cancelled by ann: too slow`)
		require.Equal(t, "cancelled", redlock.ErrorType(cancelled))
		require.Len(t, log.lines(`an operator cancels a run`), 1)
		require.ErrorIs(t, a.Cancel(t.Context(), run.ID(), "again"), admin.ErrNotRunning)
		until(170 * time.Second)
		runs, err := a.Runs(t.Context(), "job", 20)
		require.NoError(t, err)
		require.Len(t, runs, 2, "it was not repeated")
		require.Equal(t, admin.OutcomeCancelled, runs[1].Outcome)
		require.Equal(t, admin.OutcomeOK, runs[0].Outcome)
	})
}
