package web

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// What was known before is kept, and not what was before that: a page that was looked at all day
// kept all its texts.
func TestStoreForgetsWhatWasBefore(t *testing.T) {
	s := newStore[string, int](1)
	var first weak.Pointer[made[int]]
	for i := range 3 {
		is, _ := s.begin("a", i, func(*made[int]) bool { return false })
		require.True(t, i == 0 && is.was == nil || *is.was == i-1)
		if is.make(func(*int) {}); i == 0 {
			first = weak.Make(is)
		}
	}
	for range 2 {
		_, mine := s.begin("a", 3, func(*made[int]) bool { return false })
		require.True(t, mine, "also what is being made may be none for who asks: a page of an older snapshot")
	}
	runtime.GC()
	require.Nil(t, first.Value())
	runtime.KeepAlive(s)
}

// Who has read nothing while much happened gets what is left of it, and that there was more.
func TestMissedEvents(t *testing.T) {
	now := &snapshot{happened: 6, events: [][]byte{[]byte("b"), []byte("c")}}
	require.Equal(t, "bc"+string(missedText), string(now.since(&snapshot{happened: 3})))
	require.Equal(t, "c", string(now.since(&snapshot{happened: 5})))
}
