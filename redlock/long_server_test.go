package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

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
	s.do([]string{"ZADD", "tenure:cards:kind:ids", "0", long})
	s.do([]string{"LPUSH", "tenure:journal:kind", "1 2 1 - " + long})
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
		work.Go(func() {
			board := q.Board()
			if _, _, err := board.Cards(t.Context(), "kind", "", 10); err != nil {
				t.Errorf("cards: %.200v", err)
			}
			if _, err := board.Journal(t.Context(), "kind", 10); err != nil {
				t.Errorf("entries: %.200v", err)
			}
		})
		work.Wait()
	}
	for _, node := range q.Nodes(t.Context()) {
		require.NoError(t, node.Err)
	}
}

// A node whose ids of cards are in no order has nobody read for ever: each page is beyond the one
// before.
func TestPagesOfCardsInNoOrder(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	s.hold(q, "key")
	_, err := q.Board().Post(t.Context(), []redlock.Card{{Kind: "k", ID: "c", Text: "text", Lifetime: time.Hour}}, nil)
	require.NoError(t, err)
	s.do([]string{"ZADD", "tenure:cards:k:ids", "-2", "b", "-1", "a"}, 0)
	var got []string
	pages := 0
	for after := ""; pages < 10; pages++ {
		cards, next, err := q.Board().Cards(t.Context(), "k", after, 2)
		require.NoError(t, err)
		for _, c := range cards {
			got = append(got, c.ID)
		}
		if next == "" {
			break
		}
		require.Greater(t, next, after)
		after = next
	}
	require.Less(t, pages, 10)
	require.Contains(t, got, "c")
}
