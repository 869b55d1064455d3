package main

import (
	"context"
	"errors"

	"github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/tenure-dev/tenure/internal/soak/cast"
)

// playPlugin uses gocron-redis-lock as its README does: a client, and WithTries(1). It takes one client, so it has one of the servers.
func playPlugin(role *cast.Role, s settings, clock clockwork.Clock) (func() error, error) {
	client := redis.NewClient(&redis.Options{Addr: address(s.URLs[0])})
	locker, err := redislock.NewRedisLocker(client, redislock.WithTries(1), redislock.WithExpiry(ttl))
	if err != nil {
		return nil, err
	}
	return playLocked(role, clock, locker, client.Close)
}

// playRedsync does what gocron-redis-lock does, but hands redsync all servers, as it is meant to be used for a quorum.
func playRedsync(role *cast.Role, s settings, clock clockwork.Clock) (func() error, error) {
	var clients []*redis.Client
	var pools []redsyncredis.Pool
	for _, url := range s.URLs {
		client := redis.NewClient(&redis.Options{Addr: address(url)})
		clients, pools = append(clients, client), append(pools, goredis.NewPool(client))
	}
	return playLocked(role, clock, &redsyncLocker{redsync.New(pools...)}, func() error {
		var errs []error
		for _, client := range clients {
			errs = append(errs, client.Close())
		}
		return errors.Join(errs...)
	})
}

// redsyncLocker is a gocron.Locker with redsync.
type redsyncLocker struct{ *redsync.Redsync }

// Lock implements gocron.Locker.
func (l *redsyncLocker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	mutex := l.NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(ttl))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncLock{mutex}, nil
}

type redsyncLock struct{ *redsync.Mutex }

// Unlock implements gocron.Lock.
func (l redsyncLock) Unlock(ctx context.Context) error {
	_, err := l.UnlockContext(ctx)
	return err
}
