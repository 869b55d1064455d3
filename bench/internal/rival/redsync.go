package rival

import (
	"context"
	"errors"
	"math"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
)

// openRedsync opens redsync with its defaults, except for the expiry. To wait, redsync tries again
// after a random 50 to 250 ms.
func openRedsync(c Config) (Rival, error) {
	clients, err := dial(c)
	if err != nil {
		return nil, err
	}
	pools := make([]redsyncredis.Pool, len(clients))
	for i, client := range clients {
		pools[i] = pool{client}
	}
	rs := redsync.New(pools...)
	return library{func(ctx context.Context, key string, wait bool) (Held, error) {
		m := rs.NewMutex(key, redsync.WithExpiry(c.TTL), redsync.WithTries(math.MaxInt))
		lock := m.TryLockContext
		if wait {
			lock = m.LockContext
		}
		if err := lock(ctx); err != nil {
			return nil, err
		}
		return rsHeld{m}, nil
	}, func() error { hangUp(clients); return nil }}, nil
}

type rsHeld struct{ *redsync.Mutex }

func (h rsHeld) Release(ctx context.Context) error { return done(h.UnlockContext(ctx)) }
func (h rsHeld) Extend(ctx context.Context) error  { return done(h.ExtendContext(ctx)) }

func done(ok bool, err error) error {
	if ok {
		return nil
	}
	return errors.Join(errors.New("rival: redsync did not extend or unlock"), err)
}
