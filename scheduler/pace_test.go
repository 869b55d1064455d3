package scheduler

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The names that a Locker remembers are bounded, and short intervals among the first of them are
// found also when there are more.
func TestPacesAreBounded(t *testing.T) {
	var p paces
	hurried := 0
	for range 3 {
		for i := range 3 * maxPaces {
			if p.hurried(strconv.Itoa(i), time.Hour) {
				hurried++
			}
		}
		require.Len(t, p.jobs, maxPaces)
	}
	require.Equal(t, maxPaces, hurried, "at their third call")
	require.False(t, p.hurried("another", time.Nanosecond), "all others are old by now")
	require.Len(t, p.jobs, 1)
}
