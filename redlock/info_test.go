package redlock

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Scripts outlive a server before version 7.0, in its AOF and on its replicas, so that a restarted
// one would know those of the process before it.
func TestOldServersDoNotVote(t *testing.T) {
	for version, votes := range map[string]bool{"2.8.24": false, "6.2.14": false, "": false, "7.0.0": true, "7.2.4": true, "8.0.1": true} {
		info, err := wire.ParseInfo("redis_version:" + version + "\r\nrun_id:" + strings.Repeat("0", wire.RunIDLength) +
			"\r\nuptime_in_seconds:5\r\nserver_time_usec:1795748159874704\r\nrole:master\r\n")
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, info.Uptime)
		why := node.Judge(info, true)
		require.Equal(t, votes, why == nil, "version %q: %v", version, why)
		if !votes {
			require.Equal(t, wire.Unsupported, why.Condition)
			require.ErrorContains(t, why, version)
		}
	}
}

// A server is what it says it is: Valkey keeps redis_version at what it was like when it left.
func TestNamesOfServers(t *testing.T) {
	for text, name := range map[string]string{
		"":                     "",
		"redis_version:7.0.15": "redis 7.0.15",
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1": "valkey 8.0.1",
	} {
		info, err := wire.ParseInfo(text + "\r\nrun_id:" + strings.Repeat("0", wire.RunIDLength) + "\r\nuptime_in_seconds:5\r\nserver_time_usec:1795748159874704\r\nrole:master\r\n")
		require.NoError(t, err)
		require.Equal(t, name, info.Name)
	}
}
