package rival

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// rs is redsync with its defaults, the expiry aside. It waits by trying again after a random 50 to
// 250 ms.
type rs struct {
	*redsync.Redsync
	options []redsync.Option
	close   func() error
}

func openRedsync(c Config) (Rival, error) { return newRedsync(c) }

func openRedsyncFast(c Config) (Rival, error) { return newRedsync(c, redsync.WithFailFast(true)) }

func newRedsync(c Config, opts ...redsync.Option) (Rival, error) {
	clients, err := dial(c)
	if err != nil {
		return nil, err
	}
	pools := make([]redsyncredis.Pool, len(clients))
	for i, client := range clients {
		pools[i] = pool{client}
	}
	return &rs{redsync.New(pools...), append(opts, redsync.WithExpiry(c.TTL)), func() error { hangUp(clients); return nil }}, nil
}

// openRedsyncGo connects as go-redis does by default.
func openRedsyncGo(c Config) (Rival, error) {
	var clients []*redis.Client
	var pools []redsyncredis.Pool
	for _, url := range c.URLs {
		client, err := goRedis(url, c.Sent)
		if err != nil {
			return nil, err
		}
		clients, pools = append(clients, client), append(pools, goredis.NewPool(client))
	}
	return &rs{redsync.New(pools...), []redsync.Option{redsync.WithExpiry(c.TTL)}, func() error {
		var errs []error
		for _, client := range clients {
			errs = append(errs, client.Close())
		}
		return errors.Join(errs...)
	}}, nil
}

func (r *rs) Try(ctx context.Context, key string) (Held, error) {
	m := r.NewMutex(key, r.options...)
	if err := m.TryLockContext(ctx); err != nil {
		return nil, err
	}
	return rsHeld{m}, nil
}

func (r *rs) Acquire(ctx context.Context, key string) (Held, error) {
	m := r.NewMutex(key, append(r.options[:len(r.options):len(r.options)], redsync.WithTries(math.MaxInt))...)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return rsHeld{m}, nil
}

func (r *rs) Close() error { return r.close() }

type rsHeld struct{ *redsync.Mutex }

func (h rsHeld) Release(ctx context.Context) error {
	ok, err := h.UnlockContext(ctx)
	if ok {
		return nil
	}
	return errors.Join(errors.New("rival: redsync did not unlock"), err)
}

func (h rsHeld) Extend(ctx context.Context) error {
	ok, err := h.ExtendContext(ctx)
	if ok {
		return nil
	}
	return errors.Join(errors.New("rival: redsync did not extend"), err)
}
