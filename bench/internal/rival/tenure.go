package rival

import (
	"context"
	"log/slog"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// tenure is a Quorum with defaults, the fencing token and the restart gate on. A *redlock.Lease is
// a Held, and extends itself.
type tenure struct{ *redlock.Quorum }

func openTenure(c Config) (Rival, error) {
	q, err := OpenQuorum(c)
	if err != nil {
		return nil, err
	}
	return tenure{q}, nil
}

// OpenQuorum makes a Quorum as Tenure's Rival has one.
func OpenQuorum(c Config) (*redlock.Quorum, error) {
	ttl := max(c.TTL, redlock.MinTTL)
	opts := []redlock.Option{
		redlock.WithTTL(ttl),
		redlock.WithMaxTTL(max(ttl, redlock.DefaultTTL)), // the same for all rows
		redlock.WithLogger(slog.New(slog.DiscardHandler)),
	}
	if c.Tracer != nil {
		opts = append(opts, redlock.WithTracer(c.Tracer))
	}
	if c.Sent != nil {
		opts = append(opts, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) { c.Sent.dialer(o) }))
	}
	return redlock.Open(c.URLs, opts...)
}

func (t tenure) Try(ctx context.Context, key string) (Held, error) {
	l, err := t.TryAcquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (t tenure) Acquire(ctx context.Context, key string) (Held, error) {
	l, err := t.Quorum.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return l, nil
}
