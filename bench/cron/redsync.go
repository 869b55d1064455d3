package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/soak/replica"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// extendEvery is how often locks are extended: as often as Tenure extends its leases.
const extendEvery = work.TTL / 3

// beginPlugin uses gocron-redis-lock with WithTries(1), as its README does, and has it extend its
// locks. It takes one client, so it has one of the servers, which is restarted as often as each of
// the others.
func beginPlugin(p *clients.Process, s replica.Settings) (func() error, error) {
	client := newClient(s.URLs[0])
	locker, err := newPlugin(client)
	for limit := time.Now().Add(patience); err != nil && time.Now().Before(limit); time.Sleep(patience / 100) {
		locker, err = newPlugin(client)
	}
	if err != nil {
		return nil, err
	}
	return beginLocked(p, s, locker, client.Close)
}

// patience is longer than a server is away: the constructor refuses to begin without it, and a
// supervisor would start the replica again.
const patience = 10 * time.Second

func newPlugin(client *redis.Client) (gocron.Locker, error) {
	return redislock.NewRedisLockerWithOptions(client, redislock.WithAutoExtendDuration(extendEvery),
		redislock.WithRedsyncOptions(redislock.WithTries(1), redislock.WithExpiry(work.TTL)))
}

func newClient(url string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(url, "valkey://")})
}

// beginRedsync does what gocron-redis-lock does, but hands redsync all servers, as it is meant to
// be used for a quorum.
func beginRedsync(p *clients.Process, s replica.Settings) (func() error, error) {
	var clients []*redis.Client
	var pools []redsyncredis.Pool
	for _, url := range s.URLs {
		client := newClient(url)
		clients, pools = append(clients, client), append(pools, goredis.NewPool(client))
	}
	return beginLocked(p, s, &redsyncLocker{redsync.New(pools...)}, func() error {
		var errs []error
		for _, client := range clients {
			errs = append(errs, client.Close())
		}
		return errors.Join(errs...)
	})
}

// redsyncLocker is a gocron.Locker with redsync.
type redsyncLocker struct{ *redsync.Redsync }

// Lock implements gocron.Locker. The lock is extended until it is unlocked or cannot be extended.
func (l *redsyncLocker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	mutex := l.NewMutex(key, redsync.WithTries(1), redsync.WithExpiry(work.TTL))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	lock := &redsyncLock{mutex: mutex, done: make(chan struct{})}
	go lock.extend()
	return lock, nil
}

type redsyncLock struct {
	mutex *redsync.Mutex
	done  chan struct{}
}

func (l *redsyncLock) extend() {
	ticker := time.NewTicker(extendEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-ticker.C:
			if _, err := l.mutex.Extend(); err != nil {
				return
			}
		}
	}
}

// Unlock implements gocron.Lock.
func (l *redsyncLock) Unlock(ctx context.Context) error {
	close(l.done)
	_, err := l.mutex.UnlockContext(ctx)
	return err
}
