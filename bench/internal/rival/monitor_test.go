package rival

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMonitored(t *testing.T) {
	words, err := monitored("+1700000000.123456 [0 127.0.0.1:50000] \"EVALSHA\" \"ab\" \"1\" \"k \\\"y\\x00\"\r\n")
	require.NoError(t, err)
	require.Equal(t, []string{"EVALSHA", "ab", "1", "k \"y\x00"}, words)
	words, err = monitored("+1700000000.123456 [0 lua] \"get\" \"k\"\r\n")
	require.NoError(t, err)
	require.Empty(t, words)
	for _, line := range []string{"", "+OK\r\n", "+1.2 [0 x] get\r\n", "+1.2 [0 x] \"get\r\n"} {
		_, err := monitored(line)
		require.ErrorContains(t, err, "MONITOR", line)
	}
}
