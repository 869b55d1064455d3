package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// taker takes orders as a replica does, and says what a test tells it to.
func (r *replicas) taker(t *testing.T, q *redlock.Quorum, says func(ctx context.Context, o bulletin.Order) bulletin.Order) *atomic.Int64 {
	var taken atomic.Int64
	taker := &orders.Taker{Logger: r.quiet, Accept: func(o bulletin.Order) (func(context.Context) bulletin.Order, bool) {
		return func(ctx context.Context) bulletin.Order {
			if orders.Claim(ctx, q, o.ID) != nil {
				return bulletin.Order{}
			}
			orders.Taken(ctx, q, o, q.Identity())
			taken.Add(1)
			a := says(ctx, o)
			a.By = q.Identity()
			return a
		}, true
	}}
	taker.Start(q)
	t.Cleanup(taker.Close)
	time.Sleep(time.Second) // it hears
	return &taken
}

func (r *replicas) client(t *testing.T, opts ...admin.Option) *admin.Client {
	c, err := admin.New(r.quorum(t, "operator"), append([]admin.Option{admin.WithActor("ann"), admin.WithLogger(r.quiet)}, opts...)...)
	require.NoError(t, err)
	return c
}

// A run is begun once, by one of those who may, and who gave the order learns which.
func TestRunNow(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		says := func(_ context.Context, o bulletin.Order) bulletin.Order {
			require.Equal(t, "job", o.Target)
			require.Equal(t, "ann", o.By)
			require.Equal(t, "a customer waits", o.Why)
			return bulletin.Order{Result: bulletin.Done, Run: &bulletin.Run{By: "x", Token: 77, Began: time.Now().UnixMilli()}}
		}
		a := r.taker(t, r.quorum(t, "a"), says)
		b := r.taker(t, r.quorum(t, "b"), says)
		c := r.client(t)
		began := time.Now()
		run, err := c.RunNow(t.Context(), "job", "a customer waits")
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		require.Equal(t, admin.RunID{Job: "job", FencingToken: 77}, run.ID())
		require.Equal(t, "x", run.Replica)
		require.Nil(t, run.Paused)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, a.Load()+b.Load())

		given, err := c.Orders(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, given, 1)
		o := given[0]
		require.Equal(t, run.Order, o.ID)
		require.Equal(t, []string{"ann", "a customer waits", "done", "job"}, []string{o.By, o.Why, o.Result, o.Target})
		require.Contains(t, "ab", o.TakenBy)
		require.Equal(t, run.ID(), o.Run)
		require.False(t, o.Answered.Before(o.At))
	})
}

// An order that was refused says why, and by whom.
func TestRunNowIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		r.taker(t, r.quorum(t, "a"), func(context.Context, bulletin.Order) bulletin.Order {
			return bulletin.Order{Result: bulletin.Refused, Detail: "overlap", Run: &bulletin.Run{By: "b"}}
		})
		_, err := r.client(t).RunNow(t.Context(), "job", "")
		var oe *admin.OrderError
		require.ErrorAs(t, err, &oe)
		require.ErrorIs(t, err, admin.ErrRefused)
		require.Equal(t, "a", oe.By)
		require.Equal(t, "overlap", redlock.ErrorType(err))
		require.EqualError(t, err, `admin: run now of "job": refused by a: overlap: held by b`)
	})
}

// Where nobody takes an order, nobody can any more when that is said.
func TestRunNowOfNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c := r.client(t)
		began := time.Now()
		run, err := c.RunNow(t.Context(), "job", "")
		require.ErrorIs(t, err, admin.ErrNobody)
		require.ErrorIs(t, err, admin.ErrNoJob)
		require.Equal(t, "no_replica", redlock.ErrorType(err))
		given, err := c.Orders(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, []string{"nobody", "no_replica", ""}, []string{given[0].Result, given[0].Detail, given[0].TakenBy})
		require.InDelta(t, admin.DefaultOrderTimeout, time.Since(began), float64(time.Second))
		require.NotEmpty(t, run.Order)
		require.ErrorIs(t, orders.Claim(t.Context(), r.quorum(t, "late"), run.Order), orders.ErrTaken)

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began = time.Now()
		run, err = c.RunNow(ctx, "job", "")
		require.ErrorIs(t, err, admin.ErrNobody)
		require.Less(t, time.Since(began), 5*time.Second)
		require.ErrorIs(t, orders.Claim(t.Context(), r.quorum(t, "later"), run.Order), orders.ErrTaken)
	})
}

// A replica that took an order and says nothing leaves it open, and its answer is looked up if it
// was not heard.
func TestRunNowWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		late := make(chan struct{})
		r.taker(t, r.quorum(t, "a"), func(ctx context.Context, _ bulletin.Order) bulletin.Order {
			select {
			case <-late:
				return bulletin.Order{Result: bulletin.Done, Run: &bulletin.Run{By: "a", Token: 5}}
			case <-ctx.Done():
				return bulletin.Order{}
			}
		})
		c := r.client(t, admin.WithOrderTimeout(5*time.Second))
		run, err := c.RunNow(t.Context(), "job", "")
		require.ErrorIs(t, err, admin.ErrUnknown)
		require.NotErrorIs(t, err, admin.ErrNobody)
		var oe *admin.OrderError
		require.ErrorAs(t, err, &oe)
		require.Equal(t, "a", oe.By)
		require.Equal(t, run.Order, oe.ID)

		time.AfterFunc(7*time.Second, func() { close(late) })
		run, err = c.RunNow(t.Context(), "job", "")
		require.NoError(t, err)
		require.EqualValues(t, 5, run.FencingToken)
	})
}

// Without a quorum nothing hangs, and it is said whether the order was given.
func TestOrdersWithoutAQuorum(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		q := r.quorum(t, "operator")
		for !q.Nodes(t.Context())[2].Votes {
			time.Sleep(time.Second)
		}
		c, err := admin.New(q, admin.WithLogger(r.quiet), admin.WithOrderTimeout(3*time.Second))
		require.NoError(t, err)
		require.NoError(t, r.fleet.Node(0).Freeze())
		require.NoError(t, r.fleet.Node(1).Freeze())
		began := time.Now()
		_, err = c.RunNow(t.Context(), "job", "")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, admin.ErrUnknown, "it was not given")
		require.Less(t, time.Since(began), 2*time.Second)
		given, err := c.Orders(t.Context(), 10)
		require.NoError(t, err)
		require.Empty(t, given)
		began = time.Now()
		_, err = c.Pause(t.Context(), admin.Job("job"), admin.PauseOptions{Force: true})
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, admin.ErrUnknown, "nothing was done")
		require.ErrorIs(t, c.Resume(t.Context(), admin.AllJobs, ""), redlock.ErrNoQuorum)
		require.Less(t, time.Since(began), 5*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, c.Wait(ctx, "job"), context.DeadlineExceeded)
		require.ErrorIs(t, c.Resign(t.Context(), "jobs", ""), redlock.ErrNoQuorum)
		require.ErrorIs(t, c.Cancel(t.Context(), admin.RunID{Job: "job", FencingToken: 1}, ""), redlock.ErrNoQuorum)
		_, err = c.Elections(t.Context())
		require.NoError(t, err)
		e, err := c.Election(t.Context(), "jobs")
		require.NoError(t, err)
		require.ErrorIs(t, e.Err, redlock.ErrNoQuorum)
		_, err = c.Paused(t.Context(), admin.Job("job"))
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		_, err = c.Running(t.Context(), "job")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.Len(t, c.Nodes(t.Context()), 3)
		require.NoError(t, r.fleet.Node(2).Freeze())
		for _, read := range []func() error{
			func() error { _, err := c.Replicas(t.Context()); return err },
			func() error { _, err := c.Elections(t.Context()); return err },
			func() error { _, err := c.Runs(t.Context(), "job", 1); return err },
			func() error { _, err := c.Skips(t.Context(), "job", 1); return err },
			func() error { _, err := c.Orders(t.Context(), 1); return err },
			func() error { _, err := c.Job(t.Context(), "job"); return err },
			func() error {
				for _, err := range c.Jobs(t.Context()) {
					return err
				}
				return nil
			},
		} {
			require.ErrorIs(t, read(), redlock.ErrNoQuorum)
		}
		for i := range 3 {
			require.NoError(t, r.fleet.Node(i).Thaw())
		}
	})
}

// An order that a node has heard of before the quorum was gone may have been taken.
func TestRunNowThatLosesItsQuorum(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c := r.client(t, admin.WithOrderTimeout(3*time.Second))
		time.AfterFunc(time.Second, func() {
			for i := range 2 {
				assert.NoError(t, r.fleet.Node(i).Freeze())
			}
		})
		began := time.Now()
		run, err := c.RunNow(t.Context(), "job", "")
		require.ErrorIs(t, err, admin.ErrUnknown)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotEmpty(t, run.Order)
		require.Less(t, time.Since(began), 10*time.Second)
		for i := range 2 {
			require.NoError(t, r.fleet.Node(i).Thaw())
		}
	})
}

// The run that is to be cancelled, and the term that is to end, are those that there are.
func TestResignAndCancelOfWhatIsNotThere(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c := r.client(t, admin.WithOrderTimeout(2*time.Second))
		require.ErrorIs(t, c.Resign(t.Context(), "jobs", ""), elector.ErrNoLeader)
		require.ErrorIs(t, c.Cancel(t.Context(), admin.RunID{Job: "job", FencingToken: 1}, ""), admin.ErrNotRunning)
		q := r.quorum(t, "a")
		run, err := q.TryAcquire(t.Context(), "job/job")
		require.NoError(t, err)
		require.ErrorIs(t, c.Cancel(t.Context(), admin.RunID{Job: "job", FencingToken: run.FencingToken() + 1}, ""), admin.ErrNotRunning)
		began := time.Now()
		err = c.Cancel(t.Context(), admin.RunID{Job: "job", FencingToken: run.FencingToken()}, "")
		require.ErrorIs(t, err, admin.ErrUnknown, "its holder takes no orders")
		require.Less(t, time.Since(began), 4*time.Second)

		leads, err := q.TryAcquire(t.Context(), "election/jobs")
		require.NoError(t, err)
		require.ErrorIs(t, c.Resign(t.Context(), "jobs", ""), admin.ErrUnknown)
		time.AfterFunc(time.Second, func() { _ = leads.Release(context.Background()) })
		require.NoError(t, c.Resign(t.Context(), "jobs", ""), "the term has ended, whoever ended it")
		given, err := c.Orders(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, given, 3, "those that were given")
	})
}

// A node that granted a lease late may have another number in its lock than the others. Whom
// another node does not answer reads the number of the term, or of the run, all the same. An order
// that its holder does not take is no end.
func TestOrderWithANumberThatWasMisread(t *testing.T) {
	for name, test := range map[string]struct {
		key   string
		order func(ctx context.Context, c *admin.Client) error
	}{
		"resign": {elector.KeyPrefix + "jobs", func(ctx context.Context, c *admin.Client) error { return c.Resign(ctx, "jobs", "") }},
		"cancel": {admin.KeyPrefix + "job", func(ctx context.Context, c *admin.Client) error {
			run, err := c.Running(ctx, "job")
			if err != nil {
				return err
			}
			return c.Cancel(ctx, run.ID(), "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *replicas) {
				q, c := r.quorum(t, "a"), r.client(t, admin.WithOrderTimeout(2*time.Second))
				runUntilVotes(t, q)
				before, err := q.TryAcquire(t.Context(), test.key)
				require.NoError(t, err)
				require.NoError(t, before.Release(t.Context()))
				time.Sleep(time.Second) // by all nodes
				node := r.peer(t, 0)
				for slot := range 4096 {
					further := float64(time.Now().Add(time.Second).UnixMicro())
					require.NoError(t, node.Do(t.Context(), node.B().Zadd().Key("tenure:fences").Xx().ScoreMember().ScoreMember(further, strconv.Itoa(slot)).Build()).Error())
				}
				r.fleet.Node(2).SetDelay(30 * time.Millisecond)
				l, err := q.TryAcquire(t.Context(), test.key)
				require.NoError(t, err)
				time.Sleep(100 * time.Millisecond)
				r.fleet.Node(2).SetDelay(0)
				require.NoError(t, r.fleet.Node(0).Freeze())
				h, err := q.Holder(t.Context(), test.key)
				require.NoError(t, err)
				late, _ := r.fleet.Node(2).Get("tenure:{" + test.key + "}")
				require.NotContains(t, late, strconv.FormatUint(l.FencingToken(), 10))
				require.Equal(t, l.FencingToken(), h.FencingToken)
				require.ErrorIs(t, test.order(t.Context(), c), admin.ErrUnknown)
				require.NoError(t, l.Err())
				require.NoError(t, r.fleet.Node(0).Thaw())
			})
		})
	}
}

// Runs of jobs under an election are told to end when its leader resigns, and not waited for.
func TestResignLeavesRunsOfJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		begun, told, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
		r.schedules(t, "a", "job", gocron.CronJob("0 0 * * *", false), func(ctx context.Context) {
			close(begun)
			<-ctx.Done()
			close(told)
			<-goOn
		}, scheduler.WithElection("jobs"))
		time.Sleep(time.Minute)
		c := r.client(t)
		run, err := c.RunNow(t.Context(), "job", "")
		require.NoError(t, err)
		<-begun
		require.NoError(t, c.Resign(t.Context(), "jobs", ""))
		<-told
		goesOn, err := c.Running(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, run.ID(), goesOn.ID())
		close(goOn)
		require.NoError(t, c.Wait(t.Context(), "job"))
	})
}

// second returns the error of a call.
func second(_ any, err error) error { return err }

// Orders that cannot be given are refused before anything is told.
func TestOrdersThatAreNone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c, ctx, long, past := r.client(t), t.Context(), string(make([]byte, 2000)), time.Now()
		var oe *admin.OptionError
		for i, err := range []error{
			second(c.RunNow(ctx, "", "")), c.Resign(ctx, "", ""), c.Cancel(ctx, admin.RunID{}, ""), second(c.Election(ctx, "")), second(c.Running(ctx, "")),
			second(c.RunNow(ctx, long, "")), c.Resign(ctx, long, ""), second(c.Election(ctx, long)), second(c.RunNow(ctx, "\xff", "")),
			second(admin.New(r.quorum(t, "x"), admin.WithOrderTimeout(0))), second(admin.New(r.quorum(t, "x"), admin.WithTracer(nil))),
			second(c.As("")), second(c.As("ann\xff")), second(c.Pause(ctx, admin.AllJobs, admin.PauseOptions{Reason: "\xff"})),
			second(c.Backfill(ctx, "job", past.Add(1), past, "")),
		} {
			require.ErrorAs(t, err, &oe, "%d: %v", i, err)
		}
		require.Contains(t, oe.Reason, " is after "+past.Format(time.RFC3339Nano))
		require.ErrorContains(t, second(c.RunNow(ctx, "\xff", "")), "is no UTF-8")
		for _, reason := range []string{"\xff", long[:admin.MaxText+1]} {
			for _, err := range []error{second(c.RunNow(ctx, "job", reason)), c.Resign(ctx, "jobs", reason), c.Cancel(ctx, admin.RunID{Job: "job"}, reason)} {
				require.ErrorAs(t, err, &oe)
				require.Equal(t, "reason", oe.Option)
			}
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		require.EqualError(t, second(c.Replicas(gone)), "admin: cannot read which replicas live: redlock: gave up: context canceled")
		given, err := c.Orders(ctx, 10)
		require.NoError(t, err)
		require.Empty(t, given)
		require.ErrorContains(t, second(c.Pause(ctx, admin.AllJobs, admin.PauseOptions{Until: past})), "the end "+past.Format(time.RFC3339Nano)+" has passed")
	})
}

// Whoever ends a context may say why, and the error matches the context's own error all the same.
func TestCauseHidesNoContext(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c, why := r.client(t), errors.New("the process ends")
		_, err := r.quorum(t, "leader").Acquire(t.Context(), elector.KeyPrefix+"silent")
		require.NoError(t, err)
		within := func(d time.Duration) context.Context {
			ctx, cancel := context.WithTimeoutCause(t.Context(), d, why)
			t.Cleanup(cancel)
			return ctx
		}
		var watched error
		for _, watched = range c.Watch(within(time.Second)) {
		}
		all := []error{
			watched, c.Resign(within(time.Second), "silent", ""), second(c.Pause(within(200*time.Millisecond), admin.AllJobs, admin.PauseOptions{})),
		}
		for _, n := range r.fleet.Nodes() { // or they tell Wait that nothing runs
			require.NoError(t, n.Freeze())
		}
		for i, err := range append(all, c.Wait(within(time.Second), "job")) {
			require.ErrorIs(t, err, context.DeadlineExceeded, "%d", i)
			require.ErrorIs(t, err, why, "%d", i)
		}
	})
}

// Pauses and their ends are in the journal of orders, with who and why. A pause replaces another
// one.
func TestPausesAreOrders(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c := r.client(t)
		for _, why := range []string{"the database moves", "so does the network"} {
			_, err := c.Pause(t.Context(), admin.AllJobs, admin.PauseOptions{Reason: why})
			require.NoError(t, err)
		}
		paused, err := c.Paused(t.Context(), admin.AllJobs)
		require.NoError(t, err)
		require.Equal(t, "so does the network", paused.Reason)
		time.Sleep(time.Second)
		require.NoError(t, c.Resume(t.Context(), admin.AllJobs, "moved"))
		given, err := c.Orders(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, given, 3)
		require.Equal(t, []admin.OrderKind{admin.OrderResume, admin.OrderPause, admin.OrderPause}, []admin.OrderKind{given[0].Kind, given[1].Kind, given[2].Kind})
		require.Equal(t, []string{"moved", "so does the network", "the database moves"}, []string{given[0].Why, given[1].Why, given[2].Why})
		require.Equal(t, []string{"ann", "done", "", ""}, []string{given[1].By, given[1].Result, given[1].Target, given[1].TakenBy})
		newest, err := c.Orders(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, given[:1], newest)
	})
}

// Watch tells what happens, once, as it happens; and says when its reader was too slow.
func TestWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		q := r.quorum(t, "a")
		c := r.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		post := func(entries ...bulletin.Entry) {
			require.NoError(t, board.Of(q).Post(t.Context(), nil, entries...))
		}
		run, _ := bulletin.Run{Job: "job", By: "a", Token: 3, Outcome: bulletin.OK}.Entry("job/job")
		skip, _ := bulletin.Skip{Job: "job", By: "a", Reason: "paused"}.Entry("job/job", 2)
		term, _ := bulletin.Term{Term: 9, By: "a", Event: bulletin.Elected}.Entry("jobs")
		order, _ := bulletin.Order{ID: "id", Kind: bulletin.RunNow, Target: "job", By: "ann"}.Entry()
		time.AfterFunc(time.Second, func() {
			post(run, skip, term, order, bulletin.Entry{Journal: "runs/job/job", Text: "{", Most: 1, Keep: time.Hour})
		})
		time.AfterFunc(time.Minute, func() {
			for i := range 300 {
				e, _ := bulletin.Run{Job: "job", By: "a", Token: uint64(i)}.Entry("job/job")
				post(e)
			}
			time.Sleep(2 * time.Minute)
			cancel()
		})
		var seen []admin.Change
		missed := false
		var last error
		for change, err := range c.Watch(ctx) {
			if err != nil {
				last = err
				break
			}
			if missed = missed || change.Missed; len(seen) < 4 {
				seen = append(seen, change)
				if len(seen) == 4 {
					time.Sleep(2 * time.Minute)
				}
			}
		}
		require.ErrorIs(t, last, context.Canceled)
		require.True(t, missed)
		var kinds int
		for _, change := range seen {
			switch {
			case change.Run != nil:
				require.Equal(t, "job", change.Run.Job)
				require.EqualValues(t, 3, change.Run.FencingToken)
				kinds |= 1
			case change.Skip != nil:
				require.Equal(t, "job", change.Skip.Job)
				require.Equal(t, 2, change.Skip.Count)
				kinds |= 2
			case change.Term != nil:
				require.Equal(t, admin.TermChange{Election: "jobs", Term: 9, Identity: "a", Event: "elected"}, *change.Term)
				kinds |= 4
			case change.Order != nil:
				require.Equal(t, "ann", change.Order.By)
				kinds |= 8
			}
		}
		require.Equal(t, 15, kinds)
	})
}

// A Watch ends with its Quorum, and at once without one.
func TestWatchOfAClosedQuorum(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		q := r.quorum(t, "a")
		c, err := admin.New(q)
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { _ = q.Close() })
		for range 2 {
			for _, err := range c.Watch(t.Context()) {
				require.ErrorIs(t, err, redlock.ErrClosed)
			}
		}
	})
}

// Nothing panics without a context. What is read has its check elsewhere.
func TestNilContextIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c := r.client(t)
		var none context.Context
		for name, call := range map[string]func() error{
			"Pause":  func() error { _, err := c.Pause(none, admin.AllJobs, admin.PauseOptions{}); return err },
			"Resume": func() error { return c.Resume(none, admin.AllJobs, "") },
			"Paused": func() error { _, err := c.Paused(none, admin.AllJobs); return err },
			"RunNow": func() error { _, err := c.RunNow(none, "job", ""); return err },
			"Resign": func() error { return c.Resign(none, "jobs", "") },
			"Cancel": func() error { return c.Cancel(none, admin.RunID{Job: "job", FencingToken: 1}, "") },
			"Wait":   func() error { return c.Wait(none, "job") },
			"Watch": func() (err error) {
				for _, err = range c.Watch(none) {
				}
				return err
			},
		} {
			require.ErrorContains(t, call(), "ctx", name)
		}
		require.Len(t, c.Nodes(none), 3)
	})
}

// An answer that was not heard is read from the journal, before the order is told in vain for long.
func TestAnswerThatWasNotHeard(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		q, c, node := r.quorum(t, "a"), r.client(t), r.peer(t, 0)
		stop := board.Of(q).Hear(bulletin.Orders, func(e bulletin.Entry) {
			o, ok := bulletin.Parse[bulletin.Order](e.Text)
			if !ok || o.Result != "" {
				return
			}
			a := bulletin.Order{ID: o.ID, Kind: o.Kind, Target: o.Target, By: "a", Result: bulletin.Done, Run: &bulletin.Run{By: "a", Token: 5}}
			answer, _ := a.Entry()
			go enterUnheard(t, node, answer)
		})
		defer stop()
		time.Sleep(time.Second)
		began := time.Now()
		run, err := c.RunNow(t.Context(), "job", "")
		require.NoError(t, err)
		require.EqualValues(t, 5, run.FencingToken)
		require.Less(t, time.Since(began), 2*time.Second)
	})
}

// peer is somebody else's client of a node.
func (r *replicas) peer(t *testing.T, node int) valkey.Client {
	var o valkey.ClientOption
	r.fleet.ClientOption(r.fleet.URLs()[node], &o)
	o.InitAddress, o.ForceSingleClient = []string{"node"}, true
	client, err := valkey.NewClient(o)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// enterUnheard enters an entry on a node that publishes it to nobody.
func enterUnheard(t *testing.T, client valkey.Client, e bulletin.Entry) {
	text := fmt.Sprintf("1 %d 1 - %s", time.Now().UnixMilli(), e.Text)
	assert.NoError(t, client.Do(context.Background(), client.B().Lpush().Key("tenure:{}:journal:"+e.Journal).Element(text).Build()).Error())
}
