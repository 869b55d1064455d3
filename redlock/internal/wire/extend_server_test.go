package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// A key that is gone is put back only for who asks for that, on a server that was vouched for.
func TestExtendPutsAKeyBackWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	for _, test := range []struct {
		refill bool
		set    *Target
		want   Extended
	}{{false, vouched, Gone}, {true, nil, Gone}, {true, vouched, Refilled}, {false, vouched, InPlace}} {
		c := sharing(Extend, "{a}", "1", "1780000000000005")
		c.Token, c.Refill = 1780000000000005, test.refill
		got := ask(t, n.Client(), test.set, c)[0]
		require.NoError(t, got.Err)
		require.Equal(t, test.want, got.Extended)
	}
}
