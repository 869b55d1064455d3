package scheduler_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/floor"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Only ratios between benchmarks of one run mean anything. benchstat shows each beside its floor:
//
//	go test -run '^$' -bench . -count 6 ./scheduler | sed 's,Floor,/of=floor,' | benchstat -col '/of@(floor "")' -

// benchFleet is five servers on which the restart gate lets votes count. A floor gets the same: the
// clocks of such servers are a little slower to read.
func benchFleet(b *testing.B) *valkeytest.Fleet {
	b.Helper()
	return valkeytest.Start(b, 5, valkeytest.WithAge(time.Hour))
}

// BenchmarkLocker is what gocron does to a Locker for one run: Lock and Unlock. Each is of another
// job, because the Locker keeps a job locked for a minimum hold of 2 s, on purpose: Unlock shortens
// the life of the key to the rest of that.
func BenchmarkLocker(b *testing.B) {
	q, err := redlock.Open(benchFleet(b).URLs(), redlock.WithLogger(silent))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, q.Close()) })
	for _, n := range q.Nodes(b.Context()) {
		require.True(b, n.Votes, "%+v", n)
	}
	l, err := scheduler.NewLocker(q, scheduler.WithLogger(silent))
	require.NoError(b, err)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		lock, err := l.Lock(b.Context(), "job"+strconv.Itoa(i))
		if err != nil {
			b.Fatal(err)
		}
		if err := lock.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLockerFloor does the least that such a lock can do with valkey-go: a goroutine a node,
// SET NX PX, the quorum-th reply, then PEXPIRE to the minimum hold likewise. It leaves behind what
// the Locker leaves, but for the counters of tokens. It has no owner to compare, does not look
// whether a key was granted, has no token, gate, timeout or order, and nothing that would extend
// the key while a job runs.
func BenchmarkLockerFloor(b *testing.B) {
	f, err := floor.Open(benchFleet(b).URLs())
	require.NoError(b, err)
	b.Cleanup(f.Close)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key := "job" + strconv.Itoa(i)
		err := f.Majority(func(c valkey.Client) valkey.Completed {
			return c.B().Set().Key(key).Value("owner").Nx().Px(redlock.DefaultTTL).Build()
		})
		if err == nil {
			err = f.Majority(func(c valkey.Client) valkey.Completed {
				return c.B().Pexpire().Key(key).Milliseconds(scheduler.DefaultMinHold.Milliseconds()).Build()
			})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
