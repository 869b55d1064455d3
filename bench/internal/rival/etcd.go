package rival

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

const etcdPrefix = "/versus/"

// etcd is a client with one session, whose lease all its mutexes share, as the package means it. A
// session's TTL is in whole seconds.
type etcd struct {
	client  *clientv3.Client
	session *concurrency.Session
}

func openEtcd(c Config) (Rival, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Etcd}, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("rival: %w", err)
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(max(c.TTL, time.Second)/time.Second)))
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("rival: %w", err)
	}
	return &etcd{client, session}, nil
}

func (e *etcd) Try(ctx context.Context, key string) (Held, error) {
	m := concurrency.NewMutex(e.session, etcdPrefix+key)
	if err := m.TryLock(ctx); err != nil {
		return nil, err
	}
	return &etcdHeld{m, e.session}, nil
}

func (e *etcd) Acquire(ctx context.Context, key string) (Held, error) {
	m := concurrency.NewMutex(e.session, etcdPrefix+key)
	if err := m.Lock(ctx); err != nil {
		return nil, err
	}
	return &etcdHeld{m, e.session}, nil
}

func (e *etcd) Close() error {
	err := e.session.Close()
	if closing := e.client.Close(); err == nil {
		err = closing
	}
	return err
}

type etcdHeld struct {
	*concurrency.Mutex
	session *concurrency.Session
}

// Err implements Watcher.
func (h *etcdHeld) Err() error {
	select {
	case <-h.session.Done():
		return concurrency.ErrSessionExpired
	default:
		return nil
	}
}

func (h *etcdHeld) Release(ctx context.Context) error { return h.Unlock(ctx) }
