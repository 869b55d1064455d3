package redlock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// What a server says may be as long as it likes; messages repeat its beginning, and keep what there
// is to do.
func TestLongServerErrorIsCut(t *testing.T) {
	said := errors.New("OOM " + strings.Repeat("ä", 10_000))
	for name, err := range map[string]error{
		"of a known condition": &redlock.ConditionError{Condition: redlock.ConditionOutOfMemory, Err: said},
		"of an unknown one":    said,
	} {
		t.Run(name, func(t *testing.T) {
			node := &redlock.NodeError{Node: "node:6379", Op: redlock.OpAcquire, Err: err}
			all := &redlock.QuorumError{Op: redlock.OpAcquire, Key: "key", Errs: []*redlock.NodeError{node, node}}
			require.Contains(t, node.Error(), "OOM ää")
			require.Contains(t, node.Error(), "ä...")
			require.Less(t, len(node.Error()), 1000)
			require.Less(t, len(all.Error()), 2000)
			require.Equal(t, name == "of a known condition", strings.HasSuffix(node.Error(), "still extended)"))
			require.ErrorIs(t, node, said)
		})
	}
}
