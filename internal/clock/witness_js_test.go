package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// JavaScript's clocks are coarse, the wall clock coarser than the other one. Their moves against
// each other are no suspend: counted, they made the clock run ahead by seconds.
func TestCoarseClocksAreNoSuspend(t *testing.T) {
	c, began := New(), time.Now()
	for time.Since(began) < time.Second {
		c.Now()
	}
	ahead := time.Duration(c.Now()) - time.Since(began)
	require.Less(t, ahead, 10*time.Millisecond)
}
