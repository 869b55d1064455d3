package scheduler_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// nodeTimeout is the Quorum's for that TTL. In a bubble durations are exact.
const nodeTimeout = ttl / 20

// bubble runs a test with three nodes and a Quorum on them.
func bubble(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum), opts ...redlock.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fleet := redlocktest.StartPipes(t, 3)
		test(t, fleet, open(t, fleet.URLs(), append(opts, redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl))...))
	})
}

// newLocker makes a Locker without a minimum hold, and silent, unless opts say otherwise.
func newLocker(t *testing.T, q *redlock.Quorum, opts ...scheduler.LockerOption) *scheduler.Locker {
	t.Helper()
	l, err := scheduler.NewLocker(q, append([]scheduler.LockerOption{scheduler.WithMinHold(0), scheduler.WithLogger(silent)}, opts...)...)
	require.NoError(t, err)
	return l
}

// mustLock locks a job and returns the Lock behind gocron's interface.
func mustLock(t *testing.T, l *scheduler.Locker, job string) *scheduler.Lock {
	t.Helper()
	lock, err := l.Lock(t.Context(), job)
	require.NoError(t, err)
	require.IsType(t, &scheduler.Lock{}, lock)
	return lock.(*scheduler.Lock)
}

// refused tries to lock a job and returns the error.
func refused(t *testing.T, l *scheduler.Locker, job string) error {
	t.Helper()
	lock, err := l.Lock(t.Context(), job)
	require.Error(t, err)
	require.Nil(t, lock)
	return err
}

func freeze(t *testing.T, fleet *redlocktest.Fleet) {
	t.Helper()
	for _, n := range fleet.Nodes()[:2] {
		require.NoError(t, n.Freeze())
	}
}

// ended returns a context that has.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Field: whoever waits in Lock gets it when the winner is done, and runs the tick again.
func TestTrap02LockDoesNotWaitForTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		other := newLocker(t, open(t, fleet.URLs(), redlock.WithClientOption(fleet.ClientOption)), scheduler.WithTryTimeout(10*time.Second))
		l := newLocker(t, q)
		lock := mustLock(t, l, "report")
		start := time.Now()
		err := refused(t, other, "report")
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, err, redlock.ErrHeld)
		require.ErrorContains(t, err, `scheduler: job "report" is skipped: redlock: "job/report" is held`)
		var held *redlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, lock.Lease().Identity(), held.Holder.Identity)
		require.ErrorIs(t, refused(t, l, "report"), redlock.ErrHeld, "nor does the holder run it twice at a time")
		require.NoError(t, mustLock(t, other, "invoices").Unlock(t.Context()), "another job")
		require.NoError(t, lock.Unlock(ended(t)), "gocron hands it a context that Shutdown has cancelled")
		next := mustLock(t, other, "report")
		require.Greater(t, next.Lease().FencingToken(), lock.Lease().FencingToken())
		require.NoError(t, lock.Unlock(t.Context()))
		require.NoError(t, next.Lease().Err(), "a second Unlock does not touch the next holder's lease")
	})
}

// Field: a lock that is freed before the other replicas tick; three replicas ran five ticks fifteen
// times.
func TestTrap03InstantJobIsHeldForTheMinimumHold(t *testing.T) {
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
				for {
					if lock, err := l.Lock(t.Context(), "report"); err == nil {
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

// Each way in which Lock and Unlock fail, after how long, and what the log says of it.
func TestLockerWithoutNodes(t *testing.T) {
	const skipped = `msg="scheduler: job is skipped" job=report error.type=`
	for _, tc := range []struct {
		name  string
		opts  []scheduler.LockerOption
		call  func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum, l *scheduler.Locker) error
		is    error
		after time.Duration
		warns string // empty for no warning
	}{
		{"no quorum", nil, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum, l *scheduler.Locker) error {
			freeze(t, fleet)
			return refused(t, l, "report")
		}, redlock.ErrNoQuorum, nodeTimeout, skipped},
		{"try timeout", []scheduler.LockerOption{scheduler.WithTryTimeout(30 * time.Millisecond)}, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum, l *scheduler.Locker) error {
			freeze(t, fleet)
			err := refused(t, l, "report")
			require.ErrorContains(t, err, "the attempt took longer than 30ms (WithTryTimeout)")
			return err
		}, redlock.ErrTimeout, 30 * time.Millisecond, skipped},
		{"its context", nil, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum, l *scheduler.Locker) error {
			freeze(t, fleet)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err := l.Lock(ctx, "report")
			return err
		}, context.DeadlineExceeded, 20 * time.Millisecond, ""},
		{"closed Quorum", nil, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum, l *scheduler.Locker) error {
			require.NoError(t, q.Close())
			return refused(t, l, "report")
		}, redlock.ErrClosed, 0, `msg="scheduler: job is skipped" job=report error.type=closed`},
		{"lost while the job runs", nil, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum, l *scheduler.Locker) error {
			lock := mustLock(t, l, "report")
			freeze(t, fleet)
			<-lock.Lease().Context().Done()
			synctest.Wait()
			first := lock.Unlock(t.Context())
			require.Equal(t, first, lock.Unlock(t.Context()))
			return first
		}, redlock.ErrLost, -1, `msg="scheduler: the lease of a running job was lost`},
		{"lost, and Unlock finds it", nil, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum, l *scheduler.Locker) error {
			lock := mustLock(t, l, "report")
			synctest.Wait() // a quorum has granted it, the other nodes follow
			for _, n := range fleet.Nodes() {
				n.FlushAll()
			}
			return lock.Unlock(t.Context())
		}, redlock.ErrLost, -1, "the job is done and its lease was lost"},
		{"release that nobody confirms", nil, func(t *testing.T, fleet *redlocktest.Fleet, _ *redlock.Quorum, l *scheduler.Locker) error {
			lock := mustLock(t, l, "report")
			freeze(t, fleet)
			return lock.Unlock(ended(t))
		}, redlock.ErrNoQuorum, nodeTimeout, "its lease could not be released"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
				log := new(journal)
				l := newLocker(t, q, append(tc.opts, scheduler.WithLogger(log.logger()))...)
				before, err := q.TryAcquire(t.Context(), "before") // with the first lease the process asks who else uses the nodes
				require.NoError(t, err)
				require.NoError(t, before.Release(t.Context()))
				synctest.Wait()
				start := time.Now()
				require.ErrorIs(t, tc.call(t, fleet, q, l), tc.is)
				if tc.after >= 0 {
					require.Equal(t, tc.after, time.Since(start))
				}
				if tc.warns == "" {
					require.Empty(t, log.lines("level=WARN"), "a scheduler that shuts down is no trouble")
				} else {
					require.Len(t, log.lines("level=WARN"), 1)
					require.Contains(t, log.lines("level=WARN")[0], tc.warns)
				}
			})
		})
	}
}

// The lease has the values of Lock's context, and not its end, and is extended.
func TestLeaseOutlivesTheContextOfLock(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
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

// panicky panics where it is told to.
type panicky struct{ acquire, end, release bool }

var errPanicky = error(&scheduler.OptionError{Option: "panicky", Reason: "panics"})

func (p panicky) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	panicIf(p.acquire, errPanicky)
	return ctx
}
func (p panicky) TraceAcquireEnd(context.Context, redlock.TraceAcquireEndData) {
	panicIf(p.end, errPanicky)
}
func (p panicky) TraceReleaseStart(ctx context.Context, _ redlock.TraceReleaseStartData) context.Context {
	panicIf(p.release, "release")
	return ctx
}
func (panicky) TraceReleaseEnd(context.Context, redlock.TraceReleaseEndData) {}

func panicIf(broken bool, value any) {
	if broken {
		panic(value)
	}
}

// panickyHandler is a log handler that panics.
type panickyHandler struct{ slog.Handler }

func (panickyHandler) Handle(context.Context, slog.Record) error { panic(errPanicky) }

// Field: a panic in Lock kills the process, and so does (nil, nil).
func TestTrap09PanicInLockIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		log := new(journal)
		err := refused(t, newLocker(t, q, scheduler.WithLogger(log.logger())), "report")
		panicked := err.(*scheduler.PanicError)
		require.ErrorIs(t, err, errPanicky)
		require.Contains(t, string(panicked.Stack), "TraceAcquireStart")
		require.EqualError(t, err, `scheduler: job "report": panic: scheduler: panicky: panics`)
		require.Equal(t, "panic", redlock.ErrorType(panicked))
		require.Len(t, log.lines(`level=ERROR msg="scheduler: panic" job=report`), 1)
		require.ErrorIs(t, refused(t, newLocker(t, q, scheduler.WithLogger(slog.New(panickyHandler{log.logger().Handler()}))), "report"), errPanicky, "the logger may panic too")
	}, redlock.WithTracer(panicky{acquire: true}))
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		require.ErrorIs(t, refused(t, newLocker(t, q), "report"), errPanicky)
		synctest.Wait()
		require.Zero(t, fleet.Node(0).TTL("tenure:{job/report}"), "the lease is left to nobody, extended for ever")
	}, redlock.WithTracer(panicky{end: true}))
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		lock := mustLock(t, newLocker(t, q), "report")
		err := lock.Unlock(t.Context())
		require.Equal(t, "release", err.(*scheduler.PanicError).Value)
		require.Equal(t, err, lock.Unlock(t.Context()))
		require.ErrorIs(t, lock.Lease().Err(), redlock.ErrReleased)
		l := newLocker(t, q, scheduler.WithLogger(slog.New(panickyHandler{new(journal).logger().Handler()})))
		require.ErrorIs(t, refused(t, l, "main.main.func1"), errPanicky)
		lock = mustLock(t, l, "main.main.func1") // which has left nothing behind
		freeze(t, fleet)
		<-lock.Lease().Context().Done() // and a panic at the loss ends nothing
	}, redlock.WithTracer(panicky{release: true}))
}

// A job every second with the minimum hold of 2 s is refused two ticks of three, on every replica:
// the Locker says so, once. A run that is asked for soon after a tick is no short interval, nor are
// ticks that waited for a place (gocron.LimitModeWait).
func TestIntervalBelowTheMinimumHoldIsWarnedOf(t *testing.T) {
	const text = `level=WARN msg="scheduler: the job's interval is shorter than the minimum hold`
	for _, test := range []struct {
		name              string
		interval, minHold time.Duration
		warnings, calls   int
	}{
		{"a second, hold of 2 s", time.Second, scheduler.DefaultMinHold, 1, 1},
		{"2.5 s, hold of 2 s", 2500 * time.Millisecond, scheduler.DefaultMinHold, 0, 1},
		{"a second, hold of 0.5 s", time.Second, time.Second / 2, 0, 1},
		{"no hold", time.Second, 0, 0, 1},
		{"10 s, six calls", 10 * time.Second, scheduler.DefaultMinHold, 0, 6},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
				log := new(journal)
				l := newLocker(t, q, scheduler.WithMinHold(test.minHold), scheduler.WithLogger(log.logger()))
				for range 16 {
					for range test.calls {
						for _, job := range []string{"report", "mail"} {
							if lock, err := l.Lock(t.Context(), job); err == nil {
								require.NoError(t, lock.Unlock(t.Context()))
							}
						}
						time.Sleep(test.minHold / 4)
					}
					time.Sleep(test.interval)
				}
				require.Len(t, log.lines(text), 2*test.warnings)
			})
		})
	}
}

// Jobs of one name, such as those of several schedulers, are due at once, and that is no interval.
func TestJobsOfOneNameAreNotInAHurry(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		log := new(journal)
		l := newLocker(t, q, scheduler.WithMinHold(scheduler.DefaultMinHold), scheduler.WithLogger(log.logger()))
		tick := func(jobs ...context.Context) {
			for _, ctx := range jobs {
				if lock, err := l.Lock(ctx, "report"); err == nil {
					require.NoError(t, lock.Unlock(ctx))
				}
			}
		}
		first, remove := context.WithCancel(t.Context())
		second, stop := context.WithCancel(t.Context())
		defer stop()
		for range 4 {
			tick(first, second, t.Context())
			time.Sleep(10 * time.Second)
		}
		require.Empty(t, log.lines("minimum hold"))
		remove()
		for range 12 {
			tick(second)
			time.Sleep(time.Second)
		}
		require.Len(t, log.lines("minimum hold"), 1, "another job of the name takes the place of one that was removed")
	})
}

func TestJobNames(t *testing.T) {
	const longest = redlock.MaxKeyLength - len("pause/"+scheduler.KeyPrefix)
	bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		log := new(journal)
		l := newLocker(t, q, scheduler.WithLogger(log.logger()))
		for name, reason := range map[string]string{
			"": "has no name", "caf\xe9": "is not UTF-8", strings.Repeat("n", longest+1): "give it a shorter one",
		} {
			var invalid *scheduler.OptionError
			require.ErrorAs(t, refused(t, l, name), &invalid)
			require.Equal(t, "gocron.WithName", invalid.Option)
			require.Contains(t, invalid.Reason, reason)
		}
		require.NoError(t, mustLock(t, l, strings.Repeat("n", longest)).Unlock(t.Context()))
		for name, warnings := range map[string]int{
			"main.main.func1": 1, "example.org/app.New.func2.1": 1, "example.org/app.(*T).Run-fm": 1, "example.org/app.poll[...]": 1,
			"example.org/app.poll": 0, "nightly-report": 0, "radio-fm": 0, "fix.function2": 0,
		} {
			for range 2 {
				require.NoError(t, mustLock(t, l, name).Unlock(t.Context()))
			}
			require.Len(t, log.lines(`with gocron.WithName" job=`+name+"\n"), warnings, name)
		}
	})
	for _, l := range []*scheduler.Locker{nil, {}} {
		require.ErrorContains(t, refused(t, l, "report"), "scheduler: Locker: was not made by NewLocker")
	}
}
