package main

import (
	"context"
	"errors"

	gocronredislock "github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/scheduler"
)

// gocronRedisLock is gocron's own plugin, of one server, and Tenure's Locker in its place. Only
// this row has them.
var (
	gocronRedisLock = &rival.Kind{Name: "gocron-redis-lock", Module: "github.com/go-co-op/gocron-redis-lock/v2", Servers: rival.OneServer, Open: openGocronRedisLock}
	tenureLocker    = &rival.Kind{Name: "Tenure's Locker", Module: rival.Tenure.Module, Servers: rival.AllServers, Open: openTenureLocker}
)

func lockerRow() *row {
	return &row{
		name: "locker", title: "gocron's Locker: lock and unlock, one goroutine",
		columns: []column{{Name: "p50 us"}, {Name: "p99 us"}, {Name: "p50 x floor", Of: "p50 us", To: rival.Floor.Name},
			{Name: clientCPU}, {Name: serverCPU}, {Name: allocations}, {Name: "keys left"}},
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = "Each pair is another job. Tenure's Locker keeps a job locked for a minimum hold after it was unlocked, 2 s by default, on purpose: " +
				"those are its keys. The floor is that of acquire and release. "
			return s.pairs(ctx, b, []*rival.Kind{rival.Floor, tenureLocker, gocronRedisLock}, s.config(defaultTTL), true)
		},
	}
}

// cronLocker makes a Rival of a gocron.Locker.
type cronLocker struct {
	gocron.Locker
	close func() error
}

func openTenureLocker(c rival.Config) (rival.Rival, error) {
	q, err := rival.OpenQuorum(c)
	if err != nil {
		return nil, err
	}
	l, err := scheduler.NewLocker(q)
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return cronLocker{l, q.Close}, nil
}

func openGocronRedisLock(c rival.Config) (rival.Rival, error) {
	client, err := rival.GoRedis(c.URLs[0])
	if err != nil {
		return nil, err
	}
	l, err := gocronredislock.NewRedisLocker(client, redsync.WithTries(1), redsync.WithExpiry(c.TTL))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return cronLocker{l, client.Close}, nil
}

func (l cronLocker) Try(ctx context.Context, key string) (rival.Held, error) {
	lock, err := l.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return cronLock{lock}, nil
}

func (cronLocker) Acquire(context.Context, string) (rival.Held, error) {
	return nil, rival.ErrCannotWait
}

func (l cronLocker) Close() error { return l.close() }

type cronLock struct{ gocron.Lock }

func (l cronLock) Release(ctx context.Context) error { return l.Unlock(ctx) }
