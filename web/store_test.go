package web

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// What was known before is kept, and not what was before that: a page that is looked at all day
// would keep all its texts.
func TestStoreForgetsWhatWasBefore(t *testing.T) {
	s := newStore[string, string](1)
	first := func() weak.Pointer[made[string]] {
		is, mine := s.begin("a", "first", nil)
		require.True(t, mine)
		is.make(func(*string) {})
		return weak.Make(is)
	}()
	for _, was := range []string{"first", "second"} {
		is, _ := s.begin("a", "second", func(*made[string]) bool { return false })
		require.Equal(t, was, *is.was)
		is.make(func(*string) {})
	}
	runtime.GC()
	require.Nil(t, first.Value())
	runtime.KeepAlive(s)
}
