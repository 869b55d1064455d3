package moving

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	redislocker "github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// under works under a Locker of gocron, asking again every few milliseconds as ticks do.
func under(l gocron.Locker) lock {
	return func(ctx context.Context) (func() error, error) {
		held, err := l.Lock(ctx, "report")
		if err != nil {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
			return nil, err
		}
		return func() error { return held.Unlock(context.Background()) }, nil
	}
}

// The same two rollouts with gocron-redis-lock, and the Locker of the page between.
func TestMovingLockersInTwoRollouts(t *testing.T) {
	fleet := valkeytest.Start(t, 3, valkeytest.WithAge(time.Hour))
	client := redis.NewClient(&redis.Options{Addr: fleet.Node(0).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	old, err := redislocker.NewRedisLocker(client, redislocker.WithTries(100), redislocker.WithRetryDelay(10*time.Millisecond))
	require.NoError(t, err)
	locker := func() gocron.Locker { // of each replica
		q, err := redlock.Open(fleet.URLs(), redlock.WithPrefix("billing"), redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		// Ticks of these replicas are milliseconds apart.
		l, err := scheduler.NewLocker(q, scheduler.WithMinHold(10*time.Millisecond), scheduler.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		return l
	}
	rollOut(t, under(old), func() lock { return under(both{old, locker()}) }, func() lock { return under(locker()) })
}

// A lock that cannot be had twice is not kept once.
func TestBothOrNone(t *testing.T) {
	fleet := valkeytest.Start(t, 1, valkeytest.WithAge(time.Hour))
	client := redis.NewClient(&redis.Options{Addr: fleet.Node(0).Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	old, err := redislocker.NewRedisLocker(client, redislocker.WithTries(1))
	require.NoError(t, err)
	q, err := redlock.Open(fleet.URLs(), redlock.WithPrefix("billing"), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	locker, err := scheduler.NewLocker(q, scheduler.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	held, err := q.Acquire(t.Context(), scheduler.KeyPrefix+"report")
	require.NoError(t, err)
	_, err = both{old, locker}.Lock(t.Context(), "report")
	require.Error(t, err)
	free, err := old.Lock(t.Context(), "report")
	require.NoError(t, err)
	require.NoError(t, free.Unlock(t.Context()))
	require.NoError(t, held.Release(t.Context()))
	l, err := both{old, locker}.Lock(t.Context(), "report")
	require.NoError(t, err)
	require.NoError(t, l.Unlock(t.Context()))
}

// The page shows the Locker that the tests use.
func TestDocumentShowsTheLocker(t *testing.T) {
	page, err := os.ReadFile("../../docs/moving.md")
	require.NoError(t, err)
	code, err := os.ReadFile("locker.go")
	require.NoError(t, err)
	_, locker, ok := strings.Cut(string(code), "\n)\n\n")
	require.True(t, ok)
	require.Contains(t, string(page), "```go\n"+locker+"```\n")
}
