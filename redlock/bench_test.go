package redlock_test

import (
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/floor"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// Only ratios between benchmarks of one run mean anything. benchstat shows each beside its floor:
//
//	go test -run '^$' -bench . -count 6 ./redlock | sed 's,Floor,/of=floor,' | benchstat -col '/of@(floor "")' -

// benchFleet is five servers on which the restart gate lets votes count. A floor gets the same: the
// clocks of such servers are a little slower to read.
func benchFleet(b *testing.B) *valkeytest.Fleet {
	b.Helper()
	return valkeytest.Start(b, 5, valkeytest.WithAge(time.Hour))
}

func benchQuorum(b *testing.B) *redlock.Quorum {
	b.Helper()
	q, err := redlock.Open(benchFleet(b).URLs())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, q.Close()) })
	for _, n := range q.Nodes(b.Context()) {
		require.True(b, n.Votes, "%+v", n)
	}
	return q
}

func benchFloor(b *testing.B) *floor.Floor {
	b.Helper()
	f, err := floor.Open(benchFleet(b).URLs())
	require.NoError(b, err)
	b.Cleanup(f.Close)
	return f
}

// BenchmarkPair acquires and releases one key, over and over.
func BenchmarkPair(b *testing.B) {
	q := benchQuorum(b)
	b.ReportAllocs()
	for b.Loop() {
		pair(b, q, "key")
	}
}

func pair(b *testing.B, q *redlock.Quorum, key string) {
	l, err := q.TryAcquire(b.Context(), key)
	if err == nil {
		err = l.Release(b.Context())
	}
	if err != nil {
		b.Error(err)
	}
}

// BenchmarkPairFloor does the least that a quorum lock can do with valkey-go: a goroutine a node,
// SET PX, the quorum-th reply, then DEL likewise. It has no owner to compare, no token, no queue,
// no gate, no timeout and no order: with NX it would lock itself out, because a DEL overtakes its
// SET now and then.
func BenchmarkPairFloor(b *testing.B) {
	f := benchFloor(b)
	b.ReportAllocs()
	for b.Loop() {
		pairFloor(b, f, "key")
	}
}

func pairFloor(b *testing.B, f *floor.Floor, key string) {
	err := f.Majority(func(c valkey.Client) valkey.Completed {
		return c.B().Set().Key(key).Value("owner").Px(redlock.DefaultTTL).Build()
	})
	if err == nil {
		err = f.Majority(func(c valkey.Client) valkey.Completed { return c.B().Del().Key(key).Build() })
	}
	if err != nil {
		b.Error(err)
	}
}

// parallelism is how many goroutines there are for each processor.
const parallelism = 32

// inParallel does something in many goroutines, each with its own key.
func inParallel(b *testing.B, do func(key string)) {
	b.ReportAllocs()
	b.SetParallelism(parallelism)
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for key := "key" + strconv.FormatInt(n.Add(1), 10); pb.Next(); {
			do(key)
		}
	})
}

// BenchmarkPairParallel has many goroutines with a key each. What waits for a node meanwhile
// reaches it as one batch.
func BenchmarkPairParallel(b *testing.B) {
	q := benchQuorum(b)
	inParallel(b, func(key string) { pair(b, q, key) })
}

// BenchmarkPairParallelFloor is BenchmarkPairFloor in as many goroutines: one more a node for each
// of them, and each command by itself. valkey-go pipelines what goroutines send at the same time,
// but nothing is put together: so Tenure can be below this floor.
func BenchmarkPairParallelFloor(b *testing.B) {
	f := benchFloor(b)
	inParallel(b, func(key string) { pairFloor(b, f, key) })
}

// BenchmarkHeld tries to acquire a key that is held by another lease, and learns by whom.
func BenchmarkHeld(b *testing.B) {
	q := benchQuorum(b)
	_, err := q.TryAcquire(b.Context(), "key")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := q.TryAcquire(b.Context(), "key"); !errors.Is(err, redlock.ErrHeld) {
			b.Fatal(err)
		}
	}
}

// BenchmarkHeldFloor is a SET NX PX of a key that every node has, and the quorum-th reply, which is
// a nil. It does not learn by whom the key is held or for how long, and has nothing to take back.
// (A GET would cost as much, and is not an attempt.)
func BenchmarkHeldFloor(b *testing.B) {
	f := benchFloor(b)
	require.NoError(b, f.AllPipeline(func(c valkey.Client) valkey.Commands {
		return valkey.Commands{c.B().Set().Key("key").Value("another").Build()}
	}))
	b.ReportAllocs()
	for b.Loop() {
		err := f.Majority(func(c valkey.Client) valkey.Completed {
			return c.B().Set().Key("key").Value("owner").Nx().Px(redlock.DefaultTTL).Build()
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLeaseErr asks a lease that is held whether it is.
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

// BenchmarkLeaseErrFloor compares a deadline that nobody moves with Go's monotonic clock. That
// clock stands still while the machine is suspended, which a lease has to notice.
func BenchmarkLeaseErrFloor(b *testing.B) {
	start := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		if time.Since(start) > time.Hour {
			b.Fatal("it is over")
		}
	}
}
