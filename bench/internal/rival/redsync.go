package rival

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/valkey-io/valkey-go"
)

// rs is redsync with its defaults, the expiry aside. It waits by trying again after a random 50 to
// 250 ms.
type rs struct {
	*redsync.Redsync
	options []redsync.Option
	clients []valkey.Client
}

func openRedsync(c Config) (Rival, error) {
	clients, err := dial(c)
	if err != nil {
		return nil, err
	}
	pools := make([]redsyncredis.Pool, len(clients))
	for i, client := range clients {
		pools[i] = pool{client}
	}
	return &rs{redsync.New(pools...), []redsync.Option{redsync.WithExpiry(c.TTL)}, clients}, nil
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

func (r *rs) Close() error {
	hangUp(r.clients)
	return nil
}

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
