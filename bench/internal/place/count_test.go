package place

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseCommandStats(t *testing.T) {
	calls, err := parseCommandStats("# Commandstats\r\n" +
		"cmdstat_get:calls=12,usec=31,usec_per_call=2.58,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_client|list:calls=3,usec=1,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"get": 12, "client|list": 3}, calls)

	calls, err = parseCommandStats("")
	require.NoError(t, err)
	require.Empty(t, calls)

	_, err = parseCommandStats("cmdstat_get:usec=31\r\n")
	require.ErrorContains(t, err, "commandstats")
}

func TestKept(t *testing.T) {
	for name, want := range map[string]bool{
		"tenure:{k}": false, "tenure:{k}:fence": true, "tenure:{k}:once": true, "tenure:{k}:wait": true, "k": false, "valkeylock:0:k": false,
	} {
		require.Equal(t, want, kept(name), name)
	}
}
