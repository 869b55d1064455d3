package redlock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: one connection to a frozen node, 500 goroutines with contexts of 50 ms: calls came back
// after up to 11.9 s, and the cancelled SETs ran on resume with a full TTL.
func TestTrap20FrozenNodesDoNotOutliveTheContext(t *testing.T) {
	const callers, rounds, patience = 500, 3, 50 * time.Millisecond
	for _, test := range []struct {
		name   string
		frozen []int
		open   func(*servers) *redlock.Quorum
	}{
		{"a minority", []int{2}, func(s *servers) *redlock.Quorum { return s.open(redlock.WithTTL(longTTL)) }},
		{"a quorum", []int{1, 2}, func(s *servers) *redlock.Quorum { return s.open(redlock.WithTTL(longTTL)) }},
		{"a quorum with default clients", []int{1, 2}, func(s *servers) *redlock.Quorum { return s.wrap(redlock.WithTTL(longTTL)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServers(t, 3)
			q := test.open(s)
			s.freeze(test.frozen...)
			before := runtime.NumGoroutine()
			var calls sync.WaitGroup
			for range rounds {
				for i := range callers {
					calls.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						defer cancel()
						start := time.Now()
						l, err := q.TryAcquire(ctx, fmt.Sprint("key", i))
						assert.Less(t, time.Since(start), patience+2*lateness)
						if err != nil {
							assert.ErrorIs(t, err, context.DeadlineExceeded)
						} else if assert.Len(t, test.frozen, 1, "granted without a quorum") {
							assert.NoError(t, l.Release(ctx))
						}
					})
				}
				calls.Wait()
			}
			require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+callers/10 }, serverTTL/2, pollTick,
				"calls that returned left goroutines behind: %d, then %d", before, runtime.NumGoroutine())
			s.thaw(test.frozen...)
			s.requireFree(longTTL/2, "abandoned requests were carried out and not undone")
			for _, i := range test.frozen {
				require.Eventually(t, func() bool { return q.Nodes(t.Context())[i].Reachable }, longTTL, pollTick)
			}
			s.requireFree(longTTL/4, "abandoned requests were carried out late")
			_, err := q.TryAcquire(t.Context(), "key0")
			require.NoError(t, err)
		})
	}
}

// Field: 16 contenders: waking everybody splits the vote for ever, or lets two in.
func TestContendersHoldOneAfterTheOther(t *testing.T) {
	const contenders, turns = 16, 10
	s := startServers(t, 5)
	quorums := make([]*redlock.Quorum, 4)
	for i := range quorums {
		quorums[i] = s.open()
	}
	var mu sync.Mutex
	inside, last := 0, uint64(0)
	enter := func(l *redlock.Lease) {
		mu.Lock()
		defer mu.Unlock()
		inside++
		assert.Equal(t, 1, inside, "two hold the lease")
		assert.Greater(t, l.FencingToken(), last, "tokens do not follow the order of the grants")
		last = l.FencingToken()
	}
	leave := func() {
		mu.Lock()
		defer mu.Unlock()
		inside--
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var work sync.WaitGroup
	for c := range contenders {
		work.Go(func() {
			for range turns {
				l, err := quorums[c%len(quorums)].Acquire(ctx, "key")
				if !assert.NoError(t, err, "a contender starved") {
					return
				}
				enter(l)
				runtime.Gosched()
				leave()
				if !assert.NoError(t, l.Release(ctx)) {
					return
				}
			}
		})
	}
	work.Wait()
	s.requireFree(serverTTL/2, "released")
}
