package rival

import (
	"context"
	"fmt"
	"time"

	"github.com/valkey-io/valkey-go"
	"github.com/valkey-io/valkey-go/valkeylock"
)

// vl is valkeylock on the first server, with KeyMajority 1, which its documentation says is right
// for one server. (With more keys they are all on that server too: its quorum is one of keys.)
type vl struct{ valkeylock.Locker }

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
		ExtendInterval: c.TTL / 3,   // as Tenure and the others here; its default is a half
		TryNextAfter:   time.Second, // its default of 20 ms fails under the load of 512 callers
		NoLoopTracking: true,        // which its documentation recommends for servers as new as these
	})
	if err != nil {
		return nil, fmt.Errorf("rival: %w", err)
	}
	return vl{l}, nil
}

func (v vl) Try(ctx context.Context, key string) (Held, error) {
	ctx, cancel, err := v.TryWithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return &vlHeld{ctx, cancel}, nil
}

func (v vl) Acquire(ctx context.Context, key string) (Held, error) {
	ctx, cancel, err := v.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return &vlHeld{ctx, cancel}, nil
}

func (v vl) Close() error {
	v.Locker.Close()
	return nil
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
