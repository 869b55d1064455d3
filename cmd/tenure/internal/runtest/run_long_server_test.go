//go:build long

package runtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// Nodes that hang are no quorum, and the error says which: an attempt that has not ended when
// --wait has passed tells nothing.
func TestNodesThatHang(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	freezeNodes(t, fleet)
	defer thawNodes(t, fleet)
	for _, wait := range [][]string{{"--wait", "1s"}, {"--once-per", "1h"}} {
		code, _, stderr := run(t, fleet, nil, append([]string{"run", "a"}, append(wait, "--", "true")...)...)
		require.Equal(t, 69, code, "%v: %s", wait, stderr)
		require.Contains(t, stderr, "no quorum")
		require.Contains(t, stderr, fleet.Node(0).Addr())
		require.Contains(t, stderr, "tenure doctor says what is wrong")
	}
}
