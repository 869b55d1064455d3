package redlock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// Only ratios between benchmarks of one run mean anything: compare with the floor.

func benchQuorum(b *testing.B) *redlock.Quorum {
	q, err := redlock.Open(valkeytest.Start(b, 5, valkeytest.WithAge(time.Hour)).URLs())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, q.Close()) })
	q.Nodes(b.Context())
	return q
}

// BenchmarkPair acquires and releases one key, over and over.
func BenchmarkPair(b *testing.B) {
	q := benchQuorum(b)
	b.ReportAllocs()
	for b.Loop() {
		l, err := q.TryAcquire(b.Context(), "key")
		require.NoError(b, err)
		require.NoError(b, l.Release(b.Context()))
	}
}

// BenchmarkPairFloor does the least that a quorum lock can do with valkey-go: a goroutine a node, SET PX, the
// quorum-th reply, then DEL likewise. It has no owner to compare, no token, no timeout and no order: with NX it
// would lock itself out, because a DEL overtakes its SET now and then.
func BenchmarkPairFloor(b *testing.B) {
	fleet := valkeytest.Start(b, 5)
	var clients []valkey.Client
	for _, n := range fleet.Nodes() {
		client, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{n.Addr()}, ForceSingleClient: true, DisableCache: true})
		require.NoError(b, err)
		b.Cleanup(client.Close)
		clients = append(clients, client)
	}
	ctx := context.Background()
	majority := func(build func(valkey.Client) valkey.Completed) {
		replies := make(chan error, len(clients))
		for _, c := range clients {
			go func() { replies <- c.Do(ctx, build(c)).Error() }()
		}
		for range len(clients)/2 + 1 {
			require.NoError(b, <-replies)
		}
	}
	b.ReportAllocs()
	const key = "key"
	for b.Loop() {
		majority(func(c valkey.Client) valkey.Completed {
			return c.B().Set().Key(key).Value("owner").Px(10 * time.Second).Build()
		})
		majority(func(c valkey.Client) valkey.Completed { return c.B().Del().Key(key).Build() })
	}
}

// BenchmarkPairParallel has many goroutines with a key each.
func BenchmarkPairParallel(b *testing.B) {
	q := benchQuorum(b)
	b.ReportAllocs()
	b.SetParallelism(32)
	keys := make(chan string, 1024)
	for i := range cap(keys) {
		keys <- "key" + strconv.Itoa(i)
	}
	b.RunParallel(func(pb *testing.PB) {
		key := <-keys
		for pb.Next() {
			l, err := q.TryAcquire(b.Context(), key)
			require.NoError(b, err)
			require.NoError(b, l.Release(b.Context()))
		}
	})
}

func BenchmarkHeld(b *testing.B) {
	q := benchQuorum(b)
	_, err := q.TryAcquire(b.Context(), "key")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		_, err := q.TryAcquire(b.Context(), "key")
		require.ErrorIs(b, err, redlock.ErrHeld)
	}
}

func BenchmarkLeaseErr(b *testing.B) {
	l, err := benchQuorum(b).TryAcquire(b.Context(), "key")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if l.Err() != nil {
			b.Fatal(l.Err())
		}
	}
}
