package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A text of megabytes under a name of one key is a holder, or no record, and costs no other key:
// what answers say of it has bounds.
func TestLongTextsCostNoOtherKey(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	long := strings.Repeat("x", 2_000_000)
	s.do([]string{"SET", lockKey("foreign"), long})
	s.do([]string{"SET", lockKey("held") + ":once", long})
	s.hold(q, "held")
	var work sync.WaitGroup
	for range 3 {
		for i := range 100 {
			work.Go(func() {
				l, err := q.TryAcquire(t.Context(), fmt.Sprint("ordinary ", i))
				if err != nil {
					t.Errorf("ordinary %d: %.200v", i, err)
					return
				}
				_ = l.Release(t.Context())
			})
		}
		work.Go(func() {
			_, err := q.TryAcquire(t.Context(), "foreign")
			var held *redlock.HeldError
			if !errors.As(err, &held) || len(held.Holder.Identity) > 4096 {
				t.Errorf("the text is not the holder: %.200v", err)
			}
		})
		work.Go(func() {
			for _, key := range []string{"foreign", "held"} {
				if h, err := q.Holder(t.Context(), key); err != nil || len(h.Identity) > 4096 {
					t.Errorf("the holder of %s: %.200v", key, err)
				}
			}
		})
		work.Wait()
	}
	for _, node := range q.Nodes(t.Context()) {
		require.NoError(t, node.Err)
	}
}
