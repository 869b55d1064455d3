package elector

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestChangesAreOrderedAndNoneIsLost(t *testing.T) {
	e := &Elector{feed: newFeed()}
	const n = 1000
	var readers sync.WaitGroup
	for reader := range 5 {
		changes := e.Changes(t.Context())
		readers.Go(func() {
			next := uint64(1)
			for c := range changes {
				if c.Term != next {
					t.Errorf("reader %d: term %d instead of %d", reader, c.Term, next)
					return
				}
				if next++; next > n {
					return
				}
			}
		})
	}
	for i := range n { // faster than anybody reads
		e.feed.publish(Change{Kind: Resigned, Term: uint64(i + 1)})
	}
	readers.Wait()
}

func TestChangesBeginAtTheCall(t *testing.T) {
	e := &Elector{feed: newFeed()}
	e.feed.publish(Change{Kind: Elected, Term: 1})
	e.feed.publish(Change{Kind: Lost, Term: 1})
	before := e.Changes(t.Context())
	e.feed.publish(Change{Kind: Elected, Term: 2})
	during := e.Changes(t.Context())
	e.feed.publish(Change{Kind: Resigned, Term: 2})
	for range 2 { // a sequence can be ranged over again
		require.Equal(t, []Change{{Kind: Elected, Term: 2}, {Kind: Resigned, Term: 2}}, take(before, 2))
		require.Equal(t, []Change{{Kind: Elected, Term: 2}, {Kind: Resigned, Term: 2}}, take(during, 2))
	}
}

func take(changes func(func(Change) bool), n int) (got []Change) {
	for c := range changes {
		if got = append(got, c); len(got) == n {
			break
		}
	}
	return got
}

func TestChangesDeliverWhatHadHappenedWhenTheContextEnded(t *testing.T) {
	e := &Elector{feed: newFeed()}
	ctx, cancel := context.WithCancel(t.Context())
	changes := e.Changes(ctx)
	e.feed.publish(Change{Kind: Elected, Term: 1})
	e.feed.publish(Change{Kind: Resigned, Term: 1})
	cancel()
	var got []Kind
	for c := range changes {
		got = append(got, c.Kind)
	}
	require.Equal(t, []Kind{Elected, Resigned}, got)
}

// However often lead fails, the pause grows from the least to the greatest, and is never anything
// else.
func TestBackoffStaysWithinItsBounds(t *testing.T) {
	bounds := []time.Duration{minPause, minPause + 1, time.Second, time.Hour, MaxPause - 1, MaxPause}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i, least := range bounds {
		for _, most := range bounds[i:] {
			e := &Elector{cfg: &config{}}
			require.NoError(t, WithBackoff(least, most).apply(e.cfg))
			pause := e.backoff(nil, 0)
			require.Equal(t, least, pause)
			for range 100 {
				before := pause
				pause = e.backoff(nil, before)
				require.True(t, before <= pause && pause <= min(2*before, most), "%v after %v", pause, before)
				require.NotPanics(t, func() { e.pause(ended, pause) })
			}
			require.Equal(t, most, pause)
		}
	}
}
