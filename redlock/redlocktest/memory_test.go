package redlocktest_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A fleet that is closed leaves nothing behind, however many there were: miniredis keeps each text
// that it has compiled for as long as the program lives. As many fleets at once have as many texts,
// of which each has to be parsed.
func TestFleetsLeaveNothingBehind(t *testing.T) {
	const many = 8
	atOnce, parsing := kept(func() {
		fleets := make([]*redlocktest.Fleet, many)
		for i := range fleets {
			fleets[i] = usedFleet(t)
		}
		for _, fleet := range fleets {
			assert.NoError(t, fleet.Close())
		}
	})
	after, running := kept(func() {
		for range many {
			assert.NoError(t, usedFleet(t).Close())
		}
	})
	require.Less(t, after, atOnce/4, "bytes that stay")
	require.Less(t, running, 2*parsing/3, "bytes that were allocated")
}

// usedFleet starts five nodes and has a lease acquired on them.
func usedFleet(t *testing.T) *redlocktest.Fleet {
	t.Helper()
	fleet, err := redlocktest.New(5)
	require.NoError(t, err)
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption))
	require.NoError(t, err)
	l, err := q.Acquire(t.Context(), "key")
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, q.Close())
	return fleet
}

// kept is how many more bytes are in use after f than before, and how many f has allocated.
func kept(f func()) (kept, allocated int64) {
	inUse := func() (now, ever int64) {
		runtime.GC()
		runtime.GC() // for what finalizers held
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc), int64(m.TotalAlloc)
	}
	before, everBefore := inUse()
	f()
	after, everAfter := inUse()
	return after - before, everAfter - everBefore
}
