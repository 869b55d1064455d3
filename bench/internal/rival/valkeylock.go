package rival

import (
	"context"
	"fmt"
	"time"

	"github.com/valkey-io/valkey-go"
	"github.com/valkey-io/valkey-go/valkeylock"
)

// openValkeylock opens valkeylock on the first server. KeyMajority is 1, which its documentation
// says is right for one server. With more keys all of them are on that server too: valkeylock's
// quorum is one of keys.
func openValkeylock(c Config) (Rival, error) {
	o, err := valkey.ParseURL(c.URLs[0])
	if err != nil {
		return nil, fmt.Errorf("rival: %w", err)
	}
	c.Sent.dialer(&o)
	l, err := valkeylock.NewLocker(valkeylock.LockerOption{
		ClientOption:   o,
		KeyMajority:    1,
		KeyValidity:    c.TTL,
		ExtendInterval: c.TTL / 3,   // as Tenure and the others here; valkeylock's default is a half
		TryNextAfter:   time.Second, // the default of 20 ms fails under the load of 512 callers
		NoLoopTracking: true,        // valkeylock's documentation recommends it for servers as new as these
	})
	if err != nil {
		return nil, fmt.Errorf("rival: %w", err)
	}
	return library{func(ctx context.Context, key string, wait bool) (Held, error) {
		lock := l.TryWithContext
		if wait {
			lock = l.WithContext
		}
		ctx, cancel, err := lock(ctx, key)
		if err != nil {
			return nil, err
		}
		return &vlHeld{ctx, cancel}, nil
	}, func() error { l.Close(); return nil }}, nil
}

type vlHeld struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// Err implements Watcher.
func (h *vlHeld) Err() error { return h.ctx.Err() }

func (h *vlHeld) Release(context.Context) error {
	err := h.ctx.Err()
	h.cancel()
	return err
}
