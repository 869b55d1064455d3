package redlock

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/floor"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

const (
	manyLeases = 10_000
	// benchTTL is long enough for the extender to do nothing by itself while a benchmark runs.
	benchTTL = 30 * time.Minute
	// pollEvery is how late the end of an iteration may be seen, about a hundredth of it. A tracer
	// would be told at once, but what it is told costs memory for each lease, which users without
	// one do not pay.
	pollEvery = 200 * time.Microsecond
)

// BenchmarkExtend10k is 10,000 held leases that are due at the same time, extended once each: the
// extender wakes, takes what is due, sends extensions to five nodes, and moves deadlines with the
// answers. An iteration ends when all nodes have answered.
func BenchmarkExtend10k(b *testing.B) {
	q, err := Open(valkeytest.Start(b, 5, valkeytest.WithAge(time.Hour)).URLs(), WithTTL(benchTTL))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, q.Close()) })
	leases := acquireMany(b, q)
	extendMany(b, q, leases) // the first extension of a lease refreshes its token, and goes by itself

	before := q.extensions.Load()
	b.ReportAllocs()
	for b.Loop() {
		extendMany(b, q, leases)
	}
	reportLeases(b)
	require.LessOrEqual(b, q.extensions.Load()-before, uint64(b.N)*(manyLeases/wire.MaxGroup+phases), "all were extended in full groups")
}

func acquireMany(b *testing.B, q *Quorum) []*Lease {
	q.Nodes(b.Context())
	leases := make([]*Lease, manyLeases)
	var wg sync.WaitGroup
	const workers = 64
	for w := range workers {
		wg.Go(func() {
			for i := w; i < manyLeases; i += workers {
				l, err := q.TryAcquire(b.Context(), manyName(i))
				if err != nil {
					b.Error(err)
					return
				}
				leases[i] = l
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return leases
}

// extendMany makes all leases due and waits until all nodes have extended all of them.
func extendMany(b *testing.B, q *Quorum, leases []*Lease) {
	e := q.extender
	e.mu.Lock()
	now := q.clock.Now()
	for _, g := range e.groups {
		g.due = now
	}
	e.mu.Unlock()
	e.signal()

	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for busy := true; busy; {
		<-poll.C
		e.mu.Lock()
		busy = false
		for _, g := range e.groups {
			busy = busy || g.due <= now
		}
		for i := range e.lanes {
			busy = busy || e.lanes[i].underway > 0 || len(e.lanes[i].waiting) > 0
		}
		e.mu.Unlock()
	}
	for _, l := range leases {
		if clock.Instant(l.holding.deadline.Load()) < now.Add(q.cfg.validity(benchTTL)) {
			b.Fatalf("%s was not extended: it ends %v before it should", l.Key(), now.Add(q.cfg.validity(benchTTL)).Sub(clock.Instant(l.holding.deadline.Load())))
		}
	}
}

// BenchmarkExtend10kFloor is PEXPIRE of 10,000 keys on five servers: a goroutine a node, all in one
// pipeline, and on with the third node that has done it all. A command is a script for as many keys
// as an extension carries, because 10,000 commands take longer. It compares no owner, knows no
// leases, deadlines or timers, plans nothing and does not see whether a key was there.
func BenchmarkExtend10kFloor(b *testing.B) {
	f, err := floor.Open(valkeytest.Start(b, 5, valkeytest.WithAge(time.Hour)).URLs())
	require.NoError(b, err)
	b.Cleanup(f.Close)
	const script = `for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end`
	sum := sha1.Sum([]byte(script))
	sha := hex.EncodeToString(sum[:])
	keys := make([]string, manyLeases)
	for i := range keys {
		keys[i] = DefaultPrefix + ":{" + manyName(i) + "}"
	}
	require.NoError(b, f.AllPipeline(func(c valkey.Client) valkey.Commands {
		some := valkey.Commands{c.B().ScriptLoad().Script(script).Build()}
		for _, key := range keys {
			some = append(some, c.B().Set().Key(key).Value("owner").Px(benchTTL).Build())
		}
		return some
	}))
	ttl := milliseconds(benchTTL)
	b.ReportAllocs()
	for b.Loop() {
		err := f.MajorityPipeline(func(c valkey.Client) (some valkey.Commands) {
			for part := range slices.Chunk(keys, wire.MaxGroup) {
				some = append(some, c.B().Evalsha().Sha1(sha).Numkeys(int64(len(part))).Key(part...).Arg(ttl).Build())
			}
			return some
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	reportLeases(b)
}

// manyName is a key of one of many leases.
func manyName(i int) string { return "key" + strconv.Itoa(i) }

func reportLeases(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/manyLeases, "ns/lease")
}
