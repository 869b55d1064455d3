package place

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKept(t *testing.T) {
	for name, want := range map[string]bool{
		"tenure:{k}": false, "tenure:fences": true, "tenure:{k}:once": true, "tenure:{k}:wait": true, "k": false, "valkeylock:0:k": false,
	} {
		require.Equal(t, want, kept(name), name)
	}
}
