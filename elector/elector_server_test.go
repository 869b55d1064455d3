package elector_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// Tests against real valkey-server processes.

const serverTTL = 2 * time.Second

func serverCandidate(t *testing.T, fleet *valkeytest.Fleet) *elector.Elector {
	t.Helper()
	q, err := redlock.Open(fleet.URLs(), redlock.WithTTL(serverTTL), redlock.WithoutRestartGate())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	e, err := elector.New(q, "test")
	require.NoError(t, err)
	return e
}

// Several replicas that resign all the time: never two at once, terms increase, everybody gets a
// turn.
func TestHandOversNeverOverlap(t *testing.T) {
	t.Parallel()
	fleet := valkeytest.Start(t, 5)
	const replicas, terms = 4, 20
	var inside, served atomic.Int32
	var last atomic.Uint64
	enough := make(chan struct{})
	var once sync.Once
	all := make([]*elector.Elector, replicas)
	turns := make([]atomic.Int32, replicas)
	for i := range all {
		all[i] = serverCandidate(t, fleet)
	}
	var stops []*running
	for i, e := range all {
		stops = append(stops, run(t, e, func(ctx context.Context, term *elector.Term) error {
			if inside.Add(1) != 1 {
				t.Error("two leaders at once")
			}
			for j, other := range all {
				if (other.IsLeader(ctx) == nil) != (i == j) {
					t.Errorf("replica %d leads and IsLeader of %d disagrees", i, j)
				}
			}
			if before := last.Swap(term.Number()); before >= term.Number() {
				t.Errorf("term %d after %d", term.Number(), before)
			}
			turns[i].Add(1)
			inside.Add(-1)
			if served.Add(1) >= terms {
				once.Do(func() { close(enough) })
			}
			return nil
		}))
	}
	<-enough
	for _, r := range stops {
		require.NoError(t, r.end())
	}
	for i := range turns {
		require.Positive(t, turns[i].Load(), "replica %d never led", i)
	}
}
