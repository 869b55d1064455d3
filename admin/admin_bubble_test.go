package admin_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// replicas run one job on three nodes in process, every ten seconds for a while each.
type replicas struct {
	fleet *redlocktest.Fleet
	quiet *slog.Logger

	mu   sync.Mutex
	runs []time.Time // guarded by mu; when they began
}

func (r *replicas) began() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs
}

func inBubble(t *testing.T, f func(t *testing.T, r *replicas)) {
	synctest.Test(t, func(t *testing.T) {
		r := &replicas{fleet: redlocktest.StartPipes(t, 3), quiet: slog.New(slog.DiscardHandler)}
		f(t, r)
	})
}

// besideAReplica is inBubble with a process that may tell things, and a client.
func besideAReplica(t *testing.T, f func(t *testing.T, r *replicas, q *redlock.Quorum, c *admin.Client)) {
	inBubble(t, func(t *testing.T, r *replicas) {
		q, c := r.quorum(t, "a"), r.client(t)
		runUntilVotes(t, q)
		f(t, r, q, c)
	})
}

func (r *replicas) quorum(t *testing.T, identity string, opts ...redlock.Option) *redlock.Quorum {
	q, err := redlock.Open(r.fleet.URLs(), append([]redlock.Option{redlock.WithClientOption(r.fleet.ClientOption), redlock.WithLogger(r.quiet),
		redlock.WithTTL(4 * time.Second), redlock.WithIdentity(identity)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// schedules has a replica schedule a job.
func (r *replicas) schedules(t *testing.T, identity, job string, when gocron.JobDefinition, task any, opts ...scheduler.Option) {
	s, err := scheduler.New(r.quorum(t, identity), append(opts, scheduler.WithLogger(r.quiet))...)
	require.NoError(t, err)
	_, err = s.NewJob(when, gocron.NewTask(task), gocron.WithName(job))
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { _ = s.Shutdown() })
}

func (r *replicas) start(t *testing.T, identity string, takes time.Duration) {
	r.schedules(t, identity, "job", gocron.CronJob("*/10 * * * * *", true), func(ctx context.Context) {
		r.mu.Lock()
		r.runs = append(r.runs, time.Now())
		r.mu.Unlock()
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
	})
}

// Replicas keep pauses, and how far a job has come, while nodes come back empty, one after the
// other: sooner than the job is read again.
func TestPauseOutlivesItsNodes(t *testing.T) {
	for name, target := range map[string]admin.Target{"job": admin.Job("leap"), "all": admin.AllJobs} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *replicas) {
				r.schedules(t, "a", "leap", gocron.CronJob("0 3 29 2 *", false), func() {})
				c := r.client(t)
				time.Sleep(time.Minute)
				_, err := c.Pause(t.Context(), target, admin.PauseOptions{Reason: "it moves"})
				require.NoError(t, err)
				for i := range 3 {
					require.NoError(t, r.fleet.Node(i).Restart(false))
					time.Sleep(20 * time.Second)
				}
				is, err := c.Paused(t.Context(), target)
				require.NoError(t, err)
				require.Equal(t, []string{"ann", "it moves"}, []string{is.By, is.Reason})
				states, err := register.Of(r.quorum(t, "b"), admin.KeyPrefix+"leap", time.Hour).Read(t.Context())
				require.NoError(t, err)
				require.NotEmpty(t, states[0].Value)
			})
		})
	}
}

// A run that had begun is named, and waited for; no other begins until the job is resumed.
func TestPause(t *testing.T) {
	for name, target := range map[string]admin.Target{"job": admin.Job("job"), "all": admin.AllJobs} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *replicas) {
				var log bytes.Buffer
				c := r.client(t, admin.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				r.start(t, "a", 7*time.Second)
				// Of two that ask for the first number of a key, the one may restore nodes from
				// what the other one was granted for a moment. So the record of a first tick may
				// name either.
				time.Sleep(18 * time.Second)
				require.Len(t, r.began(), 1)
				r.start(t, "b", 7*time.Second)
				_, err := c.Paused(t.Context(), target)
				require.ErrorIs(t, err, admin.ErrNotPaused)
				time.Sleep(5 * time.Second)
				require.Len(t, r.began(), 2)
				run, err := c.Running(t.Context(), "job")
				require.NoError(t, err)
				require.Contains(t, "ab", run.Replica)
				require.Equal(t, r.began()[1].Truncate(10*time.Second).UnixMilli(), run.Tick.UnixMilli())

				p, err := c.Pause(t.Context(), target, admin.PauseOptions{Reason: "moving"})
				require.NoError(t, err)
				require.GreaterOrEqual(t, p.Nodes, 2)
				if target != admin.AllJobs {
					require.Equal(t, run.Replica, p.Running[0].Replica)
				}
				require.NoError(t, c.Wait(t.Context(), "job"))
				require.GreaterOrEqual(t, time.Since(r.began()[1]), 7*time.Second)
				_, err = c.Running(t.Context(), "job")
				require.ErrorIs(t, err, admin.ErrNotRunning)
				time.Sleep(time.Minute)
				require.Len(t, r.began(), 2)
				is, err := c.Paused(t.Context(), admin.Job("job"))
				require.NoError(t, err)
				require.Equal(t, target, is.Target)
				require.Equal(t, "ann", is.By)
				require.Equal(t, "moving", is.Reason)

				require.NoError(t, c.Resume(t.Context(), target, "moved"))
				time.Sleep(11 * time.Second)
				require.Len(t, r.began(), 3)
				require.Contains(t, log.String(), "order=pause")
				require.Contains(t, log.String(), "order=resume")
				require.Contains(t, log.String(), "by=ann why=moved")
			})
		})
	}
}

// With a clock that is behind no job was late, and a pause was told to stand whose end had passed
// for all replicas, and later to be in force, and to have been ended.
func TestAllGoesByTheClocksOfNodes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		for _, n := range r.fleet.Nodes() {
			n.JumpClock(time.Hour)
		}
		q, c := r.quorum(t, "a"), r.client(t)
		runUntilVotes(t, q)
		r.told(t, q, []bulletin.Card{jobCard(t, bulletin.Job{Job: "job", Key: "job/job", Next: time.Now().Add(time.Minute).UnixMilli(), By: "a"})})
		require.True(t, jobsOf(t, c)[0].Late)
		_, err := c.Pause(t.Context(), admin.AllJobs, admin.PauseOptions{Until: time.Now().Add(59 * time.Minute)})
		require.ErrorAs(t, err, new(*admin.OptionError))
		for _, resumed := range []bool{true, false} {
			_, err = c.Pause(t.Context(), admin.AllJobs, admin.PauseOptions{Until: time.Now().Add(61 * time.Minute)})
			require.NoError(t, err)
			_, err = c.Paused(t.Context(), admin.AllJobs)
			require.NoError(t, err)
			if resumed {
				require.NoError(t, c.Resume(t.Context(), admin.AllJobs, ""))
			} else {
				time.Sleep(2 * time.Minute)
			}
			_, err = c.Paused(t.Context(), admin.AllJobs)
			require.ErrorIs(t, err, admin.ErrNotPaused)
			require.ErrorIs(t, c.Resume(t.Context(), admin.AllJobs, ""), admin.ErrNotPaused)
		}
	})
}

// A pause that stands is told, although its caller did not wait, or another resumed it meanwhile.
func TestPauseThatIsNotWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		c := r.client(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := c.Pause(ctx, admin.Job("job"), admin.PauseOptions{})
		require.ErrorIs(t, err, admin.ErrNoJob)
		p, err := c.Pause(ctx, admin.Job("job"), admin.PauseOptions{Force: true})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `job "job" is paused`)
		require.GreaterOrEqual(t, p.Nodes, 2)
		_, err = c.Paused(t.Context(), admin.Job("job"))
		require.NoError(t, err)
		given, err := c.Orders(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, "done", given[0].Result)
		time.AfterFunc(200*time.Millisecond, func() { _ = c.Resume(t.Context(), admin.Job("job"), "") })
		p, err = c.Pause(t.Context(), admin.Job("job"), admin.PauseOptions{Force: true})
		require.NoError(t, err)
		require.True(t, p.Until.IsZero(), "it is not the one that the other made of it")
	})
}

func TestOptions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *replicas) {
		q := r.quorum(t, "operator")
		_, err := admin.New(nil)
		require.Error(t, err)
		for _, o := range []admin.Option{nil, admin.WithActor(""), admin.WithActor("\xff"), admin.WithActor(strings.Repeat("x", admin.MaxText+1)), admin.WithLogger(nil)} {
			_, err := admin.New(q, o)
			require.ErrorAs(t, err, new(*admin.OptionError))
		}
		c := r.client(t)
		bob, err := c.As("bob")
		require.NoError(t, err)
		require.ErrorIs(t, bob.Resume(t.Context(), admin.AllJobs, "of nothing"), admin.ErrNotPaused)
		orders, err := c.Orders(t.Context(), 1)
		require.NoError(t, err)
		require.Empty(t, orders, "there was nothing to do")
		_, err = bob.Pause(t.Context(), admin.AllJobs, admin.PauseOptions{Reason: "by another one"})
		require.NoError(t, err)
		orders, err = c.Orders(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, "bob", orders[0].By)
		require.Len(t, c.Look(t.Context()), 3)
		for _, target := range []admin.Target{{}, admin.Job("")} {
			_, err = c.Pause(t.Context(), target, admin.PauseOptions{})
			require.ErrorAs(t, err, new(*admin.OptionError))
		}
	})
}
