//go:build long

package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManyExtensionsAreFewCommands(t *testing.T) {
	t.Parallel()
	const many = 200
	s := startServers(t, 3)
	for _, stats := range s.extendedOften(s.open(), many) {
		require.Greater(t, stats["pexpire"], int64(2*many), "%v", stats)
		require.Less(t, stats["evalsha"]+stats["eval"], stats["pexpire"]/2, "%v", stats)
	}
}
