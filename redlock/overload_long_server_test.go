//go:build long

package redlock_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tenure-dev/tenure/redlock"
)

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
