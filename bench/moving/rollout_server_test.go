package moving

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	redsynclib "github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// lock waits for a lock, and returns what gives it back.
type lock func(ctx context.Context) (unlock func() error, err error)

// underBoth is the version of the service between: it works under both locks, and always takes the
// old one first.
func underBoth(old, lease lock) lock {
	return func(ctx context.Context) (func() error, error) {
		first, err := old(ctx)
		if err != nil {
			return nil, err
		}
		second, err := lease(ctx)
		if err != nil {
			return nil, errors.Join(err, first())
		}
		return func() error { return errors.Join(second(), first()) }, nil
	}
}

// work sees to it that nobody else works.
type work struct {
	t       *testing.T
	working atomic.Int32
	most    atomic.Int32
	mu      sync.Mutex
	done    map[string]int // guarded by mu; how often each version has worked
	last    time.Time      // guarded by mu
	gap     time.Duration  // guarded by mu; the longest without work
}

// replica works again and again under the lock until it is stopped.
func (w *work) replica(version string, l lock) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for ctx.Err() == nil {
			unlock, err := l(ctx)
			if err != nil {
				continue // stopped, or none of its tries
			}
			w.step(version)
			if err := unlock(); err != nil {
				w.t.Error(version, err)
			}
		}
	})
	return func() { cancel(); ended.Wait() }
}

func (w *work) step(version string) {
	now := w.working.Add(1)
	for most := w.most.Load(); now > most && !w.most.CompareAndSwap(most, now); most = w.most.Load() {
	}
	time.Sleep(5 * time.Millisecond) // the work
	w.working.Add(-1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[version]++
	if at := time.Now(); w.last.IsZero() {
		w.last = at
	} else {
		w.gap, w.last = max(w.gap, at.Sub(w.last)), at
	}
}

func (w *work) count(version string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done[version]
}

// sees waits until the version has worked ten times more.
func (w *work) sees(version string) {
	w.t.Helper()
	want := w.count(version) + 10
	require.Eventually(w.t, func() bool { return w.count(version) >= want }, patience, 5*time.Millisecond, version)
}

// oldAndNew are the locks of a service before and after.
func oldAndNew(t *testing.T) (old map[string]lock, lease func() lock) {
	t.Helper()
	fleet := valkeytest.Start(t, 3, valkeytest.WithAge(time.Hour))
	var pools []redsyncredis.Pool
	var clients []*redis.Client
	for _, n := range fleet.Nodes() {
		c := redis.NewClient(&redis.Options{Addr: n.Addr()})
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		pools, clients = append(pools, goredis.NewPool(c)), append(clients, c)
	}
	redsync, locker := redsynclib.New(pools...), redislock.New(clients[0])
	old = map[string]lock{
		"redsync": func(ctx context.Context) (func() error, error) {
			m := redsync.NewMutex("report", redsynclib.WithTries(1000), redsynclib.WithRetryDelay(10*time.Millisecond))
			if err := m.LockContext(ctx); err != nil {
				return nil, err
			}
			return func() error { _, err := m.Unlock(); return err }, nil
		},
		"bsm/redislock": func(ctx context.Context) (func() error, error) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			l, err := locker.Obtain(ctx, "report", 10*time.Second, &redislock.Options{RetryStrategy: redislock.LinearBackoff(10 * time.Millisecond)})
			if err != nil {
				return nil, err
			}
			return func() error { return l.Release(context.Background()) }, nil
		},
	}
	another := valkeytest.Start(t, 3, valkeytest.WithAge(time.Hour))
	old["leases on other nodes"] = leaseOn(t, another)
	return old, func() lock { return leaseOn(t, fleet) } // a Quorum for each replica
}

// leaseOn is a lease on a fleet.
func leaseOn(t *testing.T, fleet *valkeytest.Fleet) lock {
	t.Helper()
	q, err := redlock.Open(fleet.URLs(), redlock.WithPrefix("billing"), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return func(ctx context.Context) (func() error, error) {
		l, err := q.Acquire(ctx, "report")
		if err != nil {
			return nil, err
		}
		return func() error { return l.Release(context.Background()) }, nil
	}
}

// Two rollouts, replica by replica: from the old lock to both, and from both to the lease. Work
// goes on all the time, and nobody works beside another.
func TestMovingInTwoRollouts(t *testing.T) {
	old, lease := oldAndNew(t)
	for name, before := range old {
		t.Run(name, func(t *testing.T) {
			rollOut(t, before, func() lock { return underBoth(before, lease()) }, lease)
		})
	}
}

func rollOut(t *testing.T, old lock, between, lease func() lock) {
	t.Helper()
	w := &work{t: t, done: make(map[string]int)}
	replicas := make([]func(), 3)
	for i := range replicas {
		replicas[i] = w.replica("old", old)
	}
	w.sees("old")
	for i := range replicas {
		replicas[i]()
		replicas[i] = w.replica("both", between())
		w.sees("both")
	}
	for i := range replicas {
		replicas[i]()
		replicas[i] = w.replica("lease", lease())
		w.sees("lease")
	}
	for _, stop := range replicas {
		stop()
	}
	require.EqualValues(t, 1, w.most.Load(), "replicas worked at once")
	t.Logf("worked %v times, longest pause %v", w.done, w.gap.Round(time.Millisecond))
	require.Less(t, w.gap, patience)
}

// Without the version between, the two do not see each other: the test would notice.
func TestMovingInOneRolloutOverlaps(t *testing.T) {
	old, lease := oldAndNew(t)
	for name, before := range old {
		t.Run(name, func(t *testing.T) {
			w := &work{t: t, done: make(map[string]int)}
			first, second := w.replica("old", before), w.replica("lease", lease())
			require.Eventually(t, func() bool { return w.most.Load() == 2 }, patience, time.Millisecond)
			first()
			second()
		})
	}
}
