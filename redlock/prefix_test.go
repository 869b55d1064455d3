package redlock_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A Quorum that was given no prefix shares its keys with every other one. It says so, once.
func TestMissingPrefixIsSaid(t *testing.T) {
	fleet := redlocktest.Start(t, 3)
	for _, opts := range [][]redlock.Option{nil, {redlock.WithPrefix("billing")}, {redlock.WithPrefix(redlock.DefaultPrefix)}} {
		var log lockedBuffer
		q, err := redlock.Open(fleet.URLs(), append(opts, redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
		require.NoError(t, err)
		q.Nodes(t.Context())
		require.NoError(t, q.Close())
		if opts != nil {
			require.NotContains(t, log.String(), "WithPrefix")
			continue
		}
		require.Equal(t, 1, strings.Count(log.String(), "WithPrefix"), "%s", &log)
		require.Contains(t, log.String(), "level=INFO")
	}
}
