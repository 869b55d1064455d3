package redlock_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Each wrong URL is told what is wrong with it, and what one looks like, without its password.
func TestWrongURLs(t *testing.T) {
	for url, want := range map[string]string{
		"":                                   "is empty",
		"localhost:6379":                     "has no scheme",
		"user:s3cret@host:6379":              "has no scheme",
		"http://user:s3cret@host":            "has a scheme",
		"valkey://":                          "names no host",
		"valkey://:6379":                     "names no host",
		"valkey://host:1;other:2":            "names several servers",
		"valkeys://user:s3cret@":             "names no host",
		"valkey://user:s3cret@:6379/0":       "names no host",
		"valkey://user:s3cret@host:99999":    "has a port that is not between 1 and 65535",
		"valkey://host:0":                    "has a port that is not between 1 and 65535",
		"valkey://host:port":                 "has a port that is not a number",
		"valkey://user:s3/cret@host":         "has a port that is not a number, or a password with a special character",
		"valkey://user:12/s3cret@host":       "before its last @",
		"valkey://user:12#s3cret@host":       "before its last @",
		"valkey://user:12?s3cret@host":       "before its last @",
		"valkey://user:s3cret%zz@host":       "%25",
		"valkey://user:s3 cret@host":         "contains a blank",
		"valkey://user:s3cret@host:6379\n":   "contains a blank, a line end",
		"valkey://user:s3cret[@host":         "must be percent-encoded",
		"valkey://host/":                     "has a path that is no database number",
		"valkey://user:s3cret@host/zero":     "has a path that is no database number",
		"valkey://host/0/1":                  "has a path that is no database number",
		"valkey://host/-1":                   "has a path that is no database number",
		"valkey://host?addr=other:1":         "has a parameter that is none of client_cache, client_name",
		"valkey://host?master_set=primary":   "names a group of a Sentinel",
		"valkey://host?dial_timeout=soon":    "has a parameter dial_timeout",
		"valkey://user:770077":               "names no host behind user and password",
		"valkey://:770077/0":                 "names no host",
		"valkey://user:12?s3cret":            "has a parameter that is none of",
		"valkey://user:s3cret":               "a password with a special character",
		"valkey://user:12/s3cret":            "has a path that is no database number",
		"unix://":                            "names no socket",
		"valkey://one:6379,two:6379,three:1": "names several servers",
	} {
		_, err := redlock.Open([]string{"valkey://127.0.0.1:1", url}, redlock.WithLogger(slog.New(slog.DiscardHandler)))
		var oe *redlock.OptionError
		require.ErrorAs(t, err, &oe, url)
		require.Equal(t, "urls[1]", oe.Option, url)
		require.Contains(t, oe.Reason, want, url)
		require.Contains(t, oe.Reason, "valkey://user:password@host:6379/0", url)
		for _, secret := range []string{"s3", "cret", "770077"} {
			require.NotContains(t, oe.Reason, secret, url)
		}
	}
}

func TestRightURLs(t *testing.T) {
	for _, url := range []string{
		"valkey://127.0.0.1", "valkey://127.0.0.1:1", "redis://127.0.0.1:1/15", "valkeys://user:p%2Fw@127.0.0.1:1/0?skip_verify",
		"rediss://[::1]:1", "valkey://:password@127.0.0.1:1?db=3&client_name=me", "unix:///tmp/no.sock?db=1", "VALKEY://127.0.0.1:1",
	} {
		q, err := redlock.Open([]string{url, "valkey://127.0.0.2:1"}, redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err, url)
		require.NoError(t, q.Close())
	}
}

// One node is worth a warning, as an even number is.
func TestNumberOfNodesIsWarnedAbout(t *testing.T) {
	for n, want := range map[int]string{1: "a single node", 2: "an even number of nodes", 3: ""} {
		var log lockedBuffer
		q, err := redlock.Open([]string{"valkey://127.0.0.1:1", "valkey://127.0.0.1:2", "valkey://127.0.0.1:3"}[:n], logTo(&log))
		require.NoError(t, err)
		require.NoError(t, q.Close())
		first, _, _ := strings.Cut(log.String(), "node=")
		if want == "" {
			require.NotContains(t, log.String(), "number of nodes")
			require.NotContains(t, log.String(), "single node")
			continue
		}
		require.Contains(t, first, want)
		require.Contains(t, first, "level=WARN")
	}
}

func TestHealthNamesNoKey(t *testing.T) {
	q, err := redlock.Open([]string{"valkey://127.0.0.1:1"}, redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer q.Close()
	err = q.Healthy()
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "redlock: no quorum: 0 of 1 nodes answer and vote, 1 needed: node 127.0.0.1:1")
	require.NotContains(t, err.Error(), "health")
}
