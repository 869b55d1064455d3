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

// A prefix under which another one has its cards or journals is refused, and the error names both.
func TestPrefixWithNamesOfAnother(t *testing.T) {
	for prefix, ok := range map[string]bool{
		"a": true, "journal": true, ":journal": true, "a:journal:b": true, "a:journals": true, "a:pause": true,
		"a:journal": false, "a:cards": false, "a:journal:runs/b": false,
	} {
		q, err := redlock.Open([]string{"valkey://127.0.0.1:1"}, redlock.WithPrefix(prefix), redlock.WithLogger(slog.New(slog.DiscardHandler)))
		if ok {
			require.NoError(t, err, prefix)
			require.NoError(t, q.Close())
			continue
		}
		var oe *redlock.OptionError
		require.ErrorAs(t, err, &oe, prefix)
		require.Equal(t, "WithPrefix", oe.Option)
		require.Contains(t, oe.Reason, `"`+prefix+`"`)
		require.Contains(t, oe.Reason, `the prefix "a"`)
	}
}
