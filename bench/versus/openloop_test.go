package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

func TestSchedule(t *testing.T) {
	s := newSchedule(4000, time.Second)
	require.Equal(t, schedule{250 * time.Microsecond, 4000}, s)
	require.Equal(t, time.Duration(0), s.at(0))
	require.Equal(t, 500*time.Microsecond, s.at(2))
	for since, want := range map[time.Duration]int{0: 1, 249 * time.Microsecond: 1, 250 * time.Microsecond: 2, 999750 * time.Microsecond: 4000, time.Hour: 4000} {
		require.Equal(t, want, s.due(since), since)
	}
	require.Equal(t, schedule{time.Second, 1}, newSchedule(1, time.Millisecond), "one at least")
}

// stalling is a Rival that stands still until its gate opens.
type stalling struct {
	everybody
	gate chan struct{}
}

func (s stalling) Try(context.Context, string) (rival.Held, error) {
	<-s.gate
	return s, nil
}

// TestOpenLoopOmitsNothing shows that a stall costs all pairs that were due meanwhile, and not the
// one alone that met it.
func TestOpenLoopOmitsNothing(t *testing.T) {
	const stall = 100 * time.Millisecond
	s := stalling{gate: make(chan struct{})}
	time.AfterFunc(stall, func() { close(s.gate) })
	times, err := openLoop(t.Context(), &entrant{rival.Tenure, s}, newSchedule(1000, stall/2))
	require.NoError(t, err)
	require.Len(t, times.micros, 50)
	for i, took := range times.micros {
		require.GreaterOrEqual(t, took, micros(stall/2)-1000, "pair %d", i)
	}
	require.Greater(t, times.micros[0], times.micros[49], "the earlier was to begin, the longer it took")
}

// failing is a Rival of which every so manyeth acquisition fails.
type failing struct {
	everybody
	every int64
	tries *atomic.Int64
}

// mostly is a Rival whose acquisitions fail but for the first.
type mostly struct {
	everybody
	tries *atomic.Int64
}

func (m mostly) Try(context.Context, string) (rival.Held, error) {
	if m.tries.Add(1) > 1 {
		return nil, errFailing
	}
	return m, nil
}

var errFailing = errors.New("failing")

func (f failing) Try(context.Context, string) (rival.Held, error) {
	if f.tries.Add(1)%f.every == 0 {
		return nil, errFailing
	}
	return f, nil
}

func TestOpenLoopCountsFailures(t *testing.T) {
	plan := newSchedule(10_000, 10*time.Millisecond)
	times, err := openLoop(t.Context(), &entrant{rival.Tenure, failing{every: 4, tries: new(atomic.Int64)}}, plan)
	require.NoError(t, err)
	require.Equal(t, 25, times.failed)
	require.Len(t, times.micros, 100)
	times, err = openLoop(t.Context(), &entrant{rival.Tenure, mostly{everybody{}, new(atomic.Int64)}}, plan)
	require.NoError(t, err, "that one does not keep up is a result")
	require.Equal(t, 99, times.failed)
	_, err = openLoop(t.Context(), &entrant{rival.Tenure, failing{every: 1, tries: new(atomic.Int64)}}, plan)
	require.ErrorIs(t, err, errFailing)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = openLoop(ctx, &entrant{rival.Tenure, everybody{}}, plan)
	require.ErrorIs(t, err, context.Canceled)
}

// keys is a Rival that remembers the keys.
type keys struct {
	everybody
	mu   *sync.Mutex
	seen map[string]int
}

func (k keys) Try(_ context.Context, key string) (rival.Held, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen[key]++
	return k, nil
}

func TestNewKeysAreNew(t *testing.T) {
	k := keys{mu: &sync.Mutex{}, seen: make(map[string]int)}
	e := &entrant{rival.Tenure, k}
	first, err := manyPairs(t.Context(), e, 4, 0, warmUp(newKeys))
	require.NoError(t, err)
	more, err := manyPairs(t.Context(), e, 4, 5*time.Millisecond, newKeys)
	require.NoError(t, err)
	_, err = openLoop(t.Context(), e, newSchedule(10_000, 5*time.Millisecond))
	require.NoError(t, err)
	require.Len(t, k.seen, first+more+50)
}

func TestPacer(t *testing.T) {
	p, err := newPacer()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	for _, d := range []time.Duration{1, 300 * time.Microsecond, 5 * time.Millisecond} {
		began := time.Now()
		require.NoError(t, p.wait(d))
		require.GreaterOrEqual(t, time.Since(began), d)
	}
}
