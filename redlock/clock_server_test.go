package redlock_test

import (
	"time"

	"github.com/stretchr/testify/require"
)

// jump steps the clocks of nodes.
func (s *servers) jump(d time.Duration, nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.NoError(s.t, s.Node(i).JumpClock(d))
	}
}
