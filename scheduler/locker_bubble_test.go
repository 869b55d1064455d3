package scheduler_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// In a bubble time passes only while everything waits, so durations here are exact.

const (
	ttl         = 4 * time.Second
	nodeTimeout = ttl / 20
)

// bubble runs a test with a fleet of five nodes and a Quorum on them.
func bubble(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum), opts ...redlock.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 5)
		test(t, fleet, open(t, fleet.URLs(), append(opts, redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl))...))
	})
}

func freeze(t *testing.T, fleet *redlocktest.Fleet, nodes ...int) {
	t.Helper()
	for _, i := range nodes {
		require.NoError(t, fleet.Node(i).Freeze())
	}
}

func TestNoQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		freeze(t, fleet, 0, 2, 4)
		log := new(journal)
		start := time.Now()
		err := refused(t, newLocker(t, q, scheduler.WithLogger(log.logger())), "report")
		require.Equal(t, nodeTimeout, time.Since(start))
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, redlock.ErrHeld)
		require.Len(t, log.lines(`level=WARN msg="scheduler: job is skipped" job=report error.type=timeout`), 1)
	})
}

func TestTryTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		freeze(t, fleet, 0, 2, 4)
		l := newLocker(t, q, scheduler.WithTryTimeout(30*time.Millisecond))
		start := time.Now()
		err := refused(t, l, "report")
		require.Equal(t, 30*time.Millisecond, time.Since(start))
		require.ErrorIs(t, err, redlock.ErrTimeout)
		require.ErrorContains(t, err, "the attempt took longer than 30ms (WithTryTimeout)")
	})
}

func TestLockEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		freeze(t, fleet, 0, 2, 4)
		log := new(journal)
		l := newLocker(t, q, scheduler.WithLogger(log.logger()))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := l.Lock(ctx, "report")
		require.Equal(t, 20*time.Millisecond, time.Since(start))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, redlock.ErrTimeout, "it is the caller's own")

		_, err = l.Lock(cancelled(t), "report")
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, log.lines("level=WARN"), "a scheduler that shuts down is no trouble")
	})
}

func TestLeaseOutlivesTheContextOfLock(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		type valueKey struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "value"))
		lock, err := newLocker(t, q).Lock(ctx, "report")
		require.NoError(t, err)
		cancel()
		lease := lock.(*scheduler.Lock).Lease()
		time.Sleep(10 * ttl)
		require.NoError(t, lease.Err())
		require.Equal(t, "value", lease.Context().Value(valueKey{}))
		require.NoError(t, lock.Unlock(ctx))
		require.ErrorIs(t, context.Cause(lease.Context()), redlock.ErrReleased)
	})
}

func TestMinHoldIsExact(t *testing.T) {
	for name, tc := range map[string]struct{ job, held time.Duration }{
		"instant job":             {0, 2 * time.Second},
		"job within the hold":     {1500 * time.Millisecond, 2 * time.Second},
		"job longer than it":      {2500 * time.Millisecond, 2500 * time.Millisecond},
		"job longer than the TTL": {3 * ttl, 3 * ttl},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
				l := newLocker(t, q, scheduler.WithMinHold(scheduler.DefaultMinHold))
				lock := mustLock(t, l, "report")
				start := time.Now()
				time.Sleep(tc.job)
				require.NoError(t, lock.Unlock(t.Context()))
				if early := tc.held - tc.job - time.Millisecond; early > 0 {
					time.Sleep(early)
					require.ErrorIs(t, refused(t, l, "report"), redlock.ErrHeld)
				}
				for {
					lock, err := l.Lock(t.Context(), "report")
					if err == nil {
						require.InDelta(t, tc.held, time.Since(start), float64(2*time.Millisecond))
						require.NoError(t, lock.Unlock(t.Context()))
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		})
	}
}

// The loss is logged when it happens, because gocron's Locker has no way to tell the job.
func TestLossIsLoggedWhileTheJobRuns(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		log := new(journal)
		lock := mustLock(t, newLocker(t, q, scheduler.WithLogger(log.logger())), "report")
		freeze(t, fleet, 0, 2, 4)
		<-lock.Lease().Context().Done()
		synctest.Wait()
		const text = `level=WARN msg="scheduler: the lease of a running job was lost`
		require.Len(t, log.lines(text), 1)
		require.Contains(t, log.lines(text)[0], "error.type=lost_deadline")

		first := lock.Unlock(t.Context())
		require.ErrorIs(t, first, redlock.ErrLost)
		require.Equal(t, first, lock.Unlock(t.Context()))
		require.Len(t, log.lines("level=WARN"), 1)
	})
}

func TestLossFoundByUnlockIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		log := new(journal)
		lock := mustLock(t, newLocker(t, q, scheduler.WithLogger(log.logger())), "report")
		synctest.Wait() // a quorum has granted it, the other nodes follow
		for _, n := range fleet.Nodes() {
			n.FlushAll()
		}
		require.ErrorIs(t, lock.Unlock(t.Context()), redlock.ErrLost)
		require.Len(t, log.lines("level=WARN"), 1)
		require.Len(t, log.lines("the job is done and its lease was lost"), 1)
	})
}

func TestUnconfirmedUnlockIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		log := new(journal)
		lock := mustLock(t, newLocker(t, q, scheduler.WithLogger(log.logger())), "report")
		freeze(t, fleet, 0, 2, 4)
		start := time.Now()
		require.ErrorIs(t, lock.Unlock(cancelled(t)), redlock.ErrNoQuorum)
		require.Equal(t, nodeTimeout, time.Since(start))
		require.Len(t, log.lines("level=WARN"), 1)
		require.Len(t, log.lines("its lease could not be released"), 1)
	})
}

// panicky panics where it is told to.
type panicky struct{ acquire, release bool }

var errPanicky = error(&scheduler.OptionError{Option: "panicky", Reason: "panics"})

func (p panicky) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	if p.acquire {
		panic(errPanicky)
	}
	return ctx
}
func (panicky) TraceAcquireEnd(context.Context, redlock.TraceAcquireEndData) {}

func (p panicky) TraceReleaseStart(ctx context.Context, _ redlock.TraceReleaseStartData) context.Context {
	if p.release {
		panic("release")
	}
	return ctx
}
func (panicky) TraceReleaseEnd(context.Context, redlock.TraceReleaseEndData) {}

// panickyHandler is a log handler that panics.
type panickyHandler struct{ slog.Handler }

func (panickyHandler) Handle(context.Context, slog.Record) error { panic(errPanicky) }

// Field: a panic in Lock kills the process, and so does (nil, nil).
func TestTrap09PanicInLockIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		log := new(journal)
		err := refused(t, newLocker(t, q, scheduler.WithLogger(log.logger())), "report")
		var panicked *scheduler.PanicError
		require.ErrorAs(t, err, &panicked)
		require.Equal(t, "report", panicked.Job)
		require.ErrorIs(t, err, errPanicky)
		require.Contains(t, string(panicked.Stack), "TraceAcquireStart")
		require.EqualError(t, err, `scheduler: job "report": panic: scheduler: panicky: panics`)
		require.Equal(t, "panic", redlock.ErrorType(panicked))
		require.Len(t, log.lines(`level=ERROR msg="scheduler: panic" job=report`), 1)

		l := newLocker(t, q, scheduler.WithLogger(slog.New(panickyHandler{log.logger().Handler()})))
		require.ErrorIs(t, refused(t, l, "report"), errPanicky, "the logger may panic too")
	}, redlock.WithTracer(panicky{acquire: true}))
}

func TestPanicInUnlockIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		lock := mustLock(t, newLocker(t, q), "report")
		err := lock.Unlock(t.Context())
		var panicked *scheduler.PanicError
		require.ErrorAs(t, err, &panicked)
		require.Equal(t, "release", panicked.Value)
		require.NoError(t, panicked.Unwrap())
		require.Equal(t, err, lock.Unlock(t.Context()))
		require.ErrorIs(t, lock.Lease().Err(), redlock.ErrReleased)
	}, redlock.WithTracer(panicky{release: true}))
}

// A job every second with the minimum hold of 2 s is refused two ticks of three, on every replica:
// the Locker says so, once. It was silent.
func TestIntervalBelowTheMinimumHoldIsWarnedOf(t *testing.T) {
	const text = `level=WARN msg="scheduler: the job's interval is shorter than the minimum hold`
	for _, test := range []struct {
		name     string
		interval time.Duration
		minHold  time.Duration
		warnings int
	}{
		{"a second, hold of 2 s", time.Second, scheduler.DefaultMinHold, 1},
		{"2.5 s, hold of 2 s", 2500 * time.Millisecond, scheduler.DefaultMinHold, 0},
		{"a second, hold of 0.5 s", time.Second, time.Second / 2, 0},
		{"no hold", time.Second, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
				log := new(journal)
				l := newLocker(t, q, scheduler.WithMinHold(test.minHold), scheduler.WithLogger(log.logger()))
				ran := 0
				for range 16 {
					for _, job := range []string{"report", "mail"} {
						if lock, err := l.Lock(t.Context(), job); err == nil {
							ran++
							require.NoError(t, lock.Unlock(t.Context()))
						}
					}
					time.Sleep(test.interval)
				}
				require.Len(t, log.lines(text), 2*test.warnings)
				require.Equal(t, test.warnings == 0, ran == 32, "%d runs", ran)
				for _, line := range log.lines(text) {
					require.Contains(t, line, "set scheduler.WithMinHold to less than the interval")
					require.Contains(t, line, "min_hold=2s")
				}
			})
		})
	}
}

// A run that is asked for soon after a tick, or two replicas that share a Locker, are no short
// interval.
func TestSecondCallWithinTheMinimumHoldIsNoShortInterval(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		log := new(journal)
		l := newLocker(t, q, scheduler.WithMinHold(scheduler.DefaultMinHold), scheduler.WithLogger(log.logger()))
		for range 5 {
			lock := mustLock(t, l, "report")
			require.ErrorIs(t, refused(t, l, "report"), redlock.ErrHeld)
			require.NoError(t, lock.Unlock(t.Context()))
			time.Sleep(10 * time.Second)
		}
		require.Empty(t, log.lines("level=WARN"))
	})
}
