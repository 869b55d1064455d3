package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A deferred Release may stand before the check of the error, and what is no lease is never taken
// for one that is held.
func TestNoLeaseIsHarmless(t *testing.T) {
	for _, l := range []*redlock.Lease{nil, {}} {
		defer func() { require.NoError(t, l.Release(t.Context())) }()
		require.NoError(t, l.Release(t.Context()))
		require.ErrorIs(t, l.Extend(t.Context()), redlock.ErrNotHeld)
		require.ErrorIs(t, l.Err(), redlock.ErrNotHeld)
		require.Equal(t, "not_held", redlock.ErrorType(l.Err()))
		require.ErrorIs(t, context.Cause(l.Context()), redlock.ErrNotHeld)
		require.True(t, l.Deadline().IsZero())
		require.Empty(t, l.Key()+l.Identity())
		require.Zero(t, l.TTL())
		require.Zero(t, l.FencingToken())
		l.StopExtending()
	}
}

// The same goes for a deferred Close.
func TestNoQuorumIsHarmless(t *testing.T) {
	for _, q := range []*redlock.Quorum{nil, {}} {
		defer func() { require.NoError(t, q.Close()) }()
		require.NoError(t, q.Close())
		_, tried := q.TryAcquire(t.Context(), "key")
		_, acquired := q.Acquire(t.Context(), "key")
		_, asked := q.Holder(t.Context(), "key")
		for _, err := range []error{tried, acquired, asked, q.Validate("key"), q.Healthy()} {
			require.ErrorIs(t, err, redlock.ErrClosed)
		}
		require.Empty(t, q.Nodes(t.Context()))
		require.Empty(t, q.Identity()+q.NewIdentity())
	}
}

// A nil context is refused, with what to use, and so is a nil function; a release is carried out
// all the same.
func TestNilContextIsRefused(t *testing.T) {
	fleet := redlocktest.Start(t, 3)
	q := openOf(t, fleet.URLs(), onFleet(fleet)...)
	l, err := q.Acquire(t.Context(), "held")
	require.NoError(t, err)

	var none context.Context
	for name, call := range map[string]func() error{
		"TryAcquire": func() error { _, err := q.TryAcquire(none, "key"); return err },
		"Acquire":    func() error { _, err := q.Acquire(none, "key"); return err },
		"Holder":     func() error { _, err := q.Holder(none, "key"); return err },
		"Extend":     func() error { return l.Extend(none) },
	} {
		oe := errorAs[*redlock.OptionError](t, call())
		require.Equal(t, "ctx", oe.Option, name)
		require.Contains(t, oe.Reason, "context.Background()", name)
	}
	require.Equal(t, "fn", errorAs[*redlock.OptionError](t, q.Do(t.Context(), "key", nil)).Option)
	require.NoError(t, l.Err())
	require.Len(t, q.Nodes(none), 3)
	require.NoError(t, l.Release(none))
	_, err = q.Holder(t.Context(), "held")
	require.ErrorIs(t, err, redlock.ErrNotHeld)
}

// One node is worth a warning, as an even number is; and a Quorum that was given no prefix shares
// its keys with every other one.
func TestWhatOpenWarnsOf(t *testing.T) {
	const one, even, prefix = "level=WARN msg=.*a single node", "level=WARN msg=.*an even number of nodes", "level=INFO .*WithPrefix"
	ours := redlock.WithPrefix(redlock.DefaultPrefix)
	for _, test := range []struct {
		nodes int
		opts  []redlock.Option
		says  []string
	}{{1, nil, []string{one, prefix}}, {2, nil, []string{even, prefix}}, {3, nil, []string{prefix}}, {3, []redlock.Option{ours}, nil}} {
		var log lockedBuffer
		q, err := redlock.Open([]string{"valkey://127.0.0.1:1", "valkey://127.0.0.1:2", "valkey://127.0.0.1:3"}[:test.nodes], append(test.opts, logTo(&log))...)
		require.NoError(t, err)
		require.ErrorContains(t, q.Healthy(), fmt.Sprintf("redlock: no quorum: 0 of %d nodes answer and vote, ", test.nodes))
		require.NoError(t, q.Close())
		for _, text := range []string{one, even, prefix} {
			said := regexp.MustCompile(text).FindAllString(log.String(), -1)
			require.Len(t, said, map[bool]int{true: 1}[slices.Contains(test.says, text)], "%s", &log)
		}
	}
}

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
		"valkey://fd00::5:6380":              "has an IPv6 address without brackets",
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
		"unix://run/valkey.sock":             "a part of its path as a host",
		"valkey://one:6379,two:6379,three:1": "names several servers",
	} {
		_, err := redlock.Open([]string{"valkey://127.0.0.1:1", url}, redlock.WithLogger(slog.New(slog.DiscardHandler)))
		oe := errorAs[*redlock.OptionError](t, err)
		require.Equal(t, "urls[1]", oe.Option, url)
		require.Contains(t, oe.Reason, want, url)
		require.Contains(t, oe.Reason, "valkey://user:password@host:6379/0", url)
		for _, secret := range []string{"s3", "cret", "770077"} {
			require.NotContains(t, oe.Reason, secret, url)
		}
	}
}

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

// absurd are durations that somebody passes by mistake.
var absurd = []time.Duration{math.MinInt64, math.MinInt64 + 1, -time.Hour, -1, 0, 1, 1000 * time.Hour,
	100 * 366 * 24 * time.Hour, math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64}

// works demands that a key is had with the options, is kept for some TTLs, and is free after its
// release.
func works(t *testing.T, q *redlock.Quorum, key string, opts ...redlock.LeaseOption) {
	t.Helper()
	l, err := q.TryAcquire(t.Context(), key, opts...)
	require.NoError(t, err)
	require.NoError(t, l.Err())
	require.Positive(t, time.Until(l.Deadline()))
	time.Sleep(l.TTL() * 3 / 4)
	require.NoError(t, l.Extend(t.Context()))
	time.Sleep(l.TTL() / 2)
	require.NoError(t, l.Err())
	require.NoError(t, l.Release(t.Context()))
	next, err := q.Acquire(t.Context(), key)
	require.NoError(t, err)
	require.NoError(t, next.Release(t.Context()))
}

// requireOptionError demands that what an option cannot be is said, by its name.
func requireOptionError(t *testing.T, err error, option string) {
	t.Helper()
	oe := errorAs[*redlock.OptionError](t, err)
	require.Equal(t, option, oe.Option)
}

// Each option of a duration works, or is refused by name. None panics, overflows, or floods the
// nodes.
func TestAbsurdDurations(t *testing.T) {
	t.Parallel()
	quorum := map[string]func(time.Duration) redlock.Option{
		"WithMaxTTL": redlock.WithMaxTTL, "WithClockSkew": redlock.WithClockSkew, "WithNodeTimeout": redlock.WithNodeTimeout,
	}
	lease := map[string]func(time.Duration) redlock.LeaseOption{
		"WithTTL":            func(d time.Duration) redlock.LeaseOption { return redlock.WithTTL(d) },
		"WithExtendInterval": func(d time.Duration) redlock.LeaseOption { return redlock.WithExtendInterval(d) },
		"WithMinHold":        func(d time.Duration) redlock.LeaseOption { return redlock.WithMinHold(d) },
	}
	for _, d := range absurd {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				for name, option := range quorum {
					q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(slog.New(slog.DiscardHandler)), option(d))
					if err != nil {
						requireOptionError(t, err, name)
						continue
					}
					require.Less(t, d, 24*time.Hour, "%s has no bound", name)
					assert.NoError(t, q.Close())
				}
				q := open(t, fleet)
				for name, option := range lease {
					for _, more := range [][]redlock.LeaseOption{nil, {redlock.WithoutAutoExtend()}} {
						opts := append([]redlock.LeaseOption{option(d)}, more...)
						if err := q.Validate("key", opts...); err != nil {
							requireOptionError(t, err, name)
							continue
						}
						require.Less(t, d, 24*time.Hour+1, "%s has no bound", name)
						works(t, q, name, opts...)
					}
				}
			})
		})
	}
}
