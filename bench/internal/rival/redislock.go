package rival

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockBackoff is how long redislock waits between tries, as in the example of its
// documentation.
const redislockBackoff = 100 * time.Millisecond

// redislockPatience is a deadline beyond every row. Without a deadline redislock gives up after the
// TTL.
const redislockPatience = time.Hour

// GoRedis connects as go-redis does by default. If sent is set, it counts the commands that are
// sent. go-redis' warnings about its own connections are left out.
func GoRedis(url string, sent *Sent) (*redis.Client, error) {
	o, err := redis.ParseURL("redis" + url[len("valkey"):])
	if err != nil {
		return nil, fmt.Errorf("rival: %w", err)
	}
	if sent != nil {
		d := net.Dialer{Timeout: 5 * time.Second} // as go-redis' own
		o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			return sent.count(d.DialContext(ctx, network, address))
		}
	}
	redis.SetLogger(silence{})
	return redis.NewClient(o), nil
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// openRedislock opens redislock, on the first server.
func openRedislock(c Config) (Rival, error) {
	client, err := GoRedis(c.URLs[0], c.Sent)
	if err != nil {
		return nil, err
	}
	locker := redislock.New(client)
	return library{func(ctx context.Context, key string, wait bool) (Held, error) {
		var options *redislock.Options
		if wait {
			options = &redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockBackoff)}
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, redislockPatience)
			defer cancel()
		}
		l, err := locker.Obtain(ctx, key, c.TTL, options)
		if err != nil {
			return nil, err
		}
		return bsmHeld{l, c.TTL}, nil
	}, client.Close}, nil
}

type bsmHeld struct {
	*redislock.Lock
	ttl time.Duration
}

func (h bsmHeld) Extend(ctx context.Context) error { return h.Refresh(ctx, h.ttl, nil) }
