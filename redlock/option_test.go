package redlock

import (
	"encoding/pem"

	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/roster"
)

// noTracer is the type of a tracer whose maker failed.
type noTracer struct{ AcquireTracer }

func TestBadOptionsAreNamed(t *testing.T) {
	three := []string{"valkey://a", "valkey://b", "valkey://c"}
	for _, test := range []struct {
		urls   []string
		opts   []Option
		option string
		reason string
	}{
		{nil, nil, "urls", "empty"},
		{[]string{"valkey://a", "valkey://a:6379"}, nil, "urls[1]", "same node as urls[0]"},
		{[]string{"valkey://a?addr=b:6379"}, nil, "urls[0]", "has a parameter that is none of"},
		{[]string{"http://a"}, nil, "urls[0]", "has a scheme that is none of"},
		{[]string{"valkey://u:p@55/hush@a"}, nil, "urls[0]", "write % as %25"},
		{three, []Option{nil}, "Option", "nil"},
		{three, []Option{WithTTL(999 * time.Millisecond)}, "WithTTL", "minimum of 1s"},
		{three, []Option{WithTTL(time.Second + 1)}, "WithTTL", "whole number of milliseconds"},
		{three, []Option{WithTTL(24*time.Hour + time.Millisecond)}, "WithTTL", "maximum of 24h"},
		{three, []Option{WithTTL(math.MaxInt64 / time.Millisecond * time.Millisecond)}, "WithTTL", "maximum of 24h"},
		{three, []Option{WithExtendInterval(0)}, "WithExtendInterval", "WithoutAutoExtend"},
		{three, []Option{WithExtendInterval(1)}, "WithExtendInterval", "minimum of 10ms"},
		{three, []Option{WithoutAutoExtend(), WithExtendInterval(math.MaxInt64)}, "WithExtendInterval", "maximum of 24h"},
		{three, []Option{WithExtendInterval(9 * time.Second)}, "WithExtendInterval", "two attempts"},
		{three, []Option{WithTTL(time.Second), WithExtendInterval(700 * time.Millisecond)}, "WithExtendInterval", "two attempts"},
		{three, []Option{WithMinHold(-1)}, "WithMinHold", "negative"},
		{three, []Option{WithMinHold(DefaultTTL)}, "WithMinHold", "below the TTL"},
		{three, []Option{WithIdentity("")}, "WithIdentity", "1 to 256"},
		{three, []Option{WithIdentity(strings.Repeat("x", 257))}, "WithIdentity", "not 257"},
		{three, []Option{WithIdentity("a\nb")}, "WithIdentity", "control character"},
		{three, []Option{WithPrefix("a{b")}, "WithPrefix", "without { or }"},
		{three, []Option{WithPrefix("")}, "WithPrefix", "1 to 128"},
		{three, []Option{WithPrefix("a*")}, "WithPrefix", "meaning in ACLs"},
		{three, []Option{WithPrefix("a b")}, "WithPrefix", "blanks"},
		{three, []Option{WithPrefix("a\x00")}, "WithPrefix", "control characters"},
		{three, []Option{WithIdentity("R 1 0000000000000004 dddddddddddddddddddddd me")}, "WithIdentity", "for a waiter"},
		{three, []Option{WithNodeTimeout(0)}, "WithNodeTimeout", "below 1ms"},
		{three, []Option{WithNodeTimeout(3 * time.Second)}, "WithNodeTimeout", "quarter of the TTL"},
		{three, []Option{WithDrift(-0.1)}, "WithDrift", "between 0 and 0.2"},
		{three, []Option{WithDrift(0.3)}, "WithDrift", "between 0 and 0.2"},
		{three, []Option{WithLogger(nil)}, "WithLogger", "DiscardHandler"},
		{three, []Option{WithTracer(nil)}, "WithTracer", "leave the option out"},
		{three, []Option{WithTracer((*noTracer)(nil))}, "WithTracer", "leave the option out"},
		{three, []Option{WithClientOption(nil)}, "WithClientOption", "nil"},
	} {
		t.Run(fmt.Sprint(test.option, " ", test.reason), func(t *testing.T) {
			q, err := Open(test.urls, test.opts...)
			require.Nil(t, q)
			var oe *OptionError
			require.ErrorAs(t, err, &oe)
			require.Equal(t, test.option, oe.Option)
			require.Contains(t, oe.Reason, test.reason)
			require.NotContains(t, err.Error(), "p@55", "credentials")
			require.NotContains(t, err.Error(), "hush", "credentials")
			require.Equal(t, "invalid", ErrorType(err))
		})
	}
}

// A node is one server, whatever a hook says.
func TestClientOptionsOfSeveralServers(t *testing.T) {
	for want, change := range map[string]func(*valkey.ClientOption){
		"no Cluster":                func(o *valkey.ClientOption) { o.InitAddress = append(o.InitAddress, "other:1") },
		"look the master's address": func(o *valkey.ClientOption) { o.Sentinel.MasterSet = "primary" },
	} {
		c, err := newConfig([]Option{WithClientOption(func(_ string, o *valkey.ClientOption) { change(o) }), WithReplicas()})
		require.NoError(t, err)
		_, err = c.nodeOption("valkey://h")
		require.ErrorContains(t, err, want)
	}
}

func TestBadLeaseArguments(t *testing.T) {
	cfg, err := newConfig(nil)
	require.NoError(t, err)
	for key, reason := range map[string]string{
		"":                           "is empty",
		strings.Repeat("k", 1+1<<10): "1025 bytes",
		"}x":                         "starts with }",
	} {
		_, err := cfg.keys(key)
		require.ErrorContains(t, err, reason)
	}
	_, err = cfg.forLease([]LeaseOption{nil})
	require.ErrorContains(t, err, "nil option")
	_, err = cfg.forLease([]LeaseOption{WithTTL(time.Second), WithMinHold(time.Second)})
	require.ErrorContains(t, err, "WithMinHold")
}

func TestDefaults(t *testing.T) {
	c, err := newConfig(nil)
	require.NoError(t, err)
	l, err := c.forLease(nil)
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, l.ttl)
	require.Equal(t, 10*time.Second/3, l.interval)
	require.Equal(t, 500*time.Millisecond, c.timeout(l.ttl))
	require.Equal(t, 100*time.Millisecond, c.timeout(time.Second))
	require.Equal(t, 200*time.Millisecond, c.timeout(4*time.Second))
	require.Equal(t, 9898*time.Millisecond, c.validity(l.ttl))
	require.Equal(t, "tenure", c.prefix)
}

func TestLeaseOptionsStartFromTheQuorums(t *testing.T) {
	c, err := newConfig([]Option{WithTTL(20 * time.Second), WithIdentity("q"), WithMinHold(time.Second)})
	require.NoError(t, err)
	l, err := c.forLease([]LeaseOption{WithIdentity("l"), WithoutAutoExtend()})
	require.NoError(t, err)
	require.Equal(t, "l", l.identity)
	require.True(t, l.manual)
	require.Equal(t, 20*time.Second, l.ttl)
	require.Equal(t, time.Second, l.minHold)
	l, err = c.forLease([]LeaseOption{WithTTL(6 * time.Second)})
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, l.interval, "a default interval follows the lease's TTL")
	require.Equal(t, "l", newQuorum(c, 1).NewIdentity(WithIdentity("l"), WithTTL(0), WithIdentity("a\nb")), "it can be used")
}

// What the Quorum was given, and the default, give way to a TTL that has no room for them. What the
// lease was given does not.
func TestExtendIntervalGivesWayToAShorterTTL(t *testing.T) {
	c, err := newConfig([]Option{WithExtendInterval(5 * time.Second)})
	require.NoError(t, err)
	for _, test := range []struct {
		opts []LeaseOption
		want time.Duration
	}{
		{nil, 5 * time.Second},
		{[]LeaseOption{WithTTL(8 * time.Second)}, 5 * time.Second},
		{[]LeaseOption{WithTTL(5 * time.Second)}, c.longestInterval(5 * time.Second)},
		{[]LeaseOption{WithTTL(time.Second)}, c.longestInterval(time.Second)},
		{[]LeaseOption{WithTTL(time.Second), WithExtendInterval(100 * time.Millisecond)}, 100 * time.Millisecond},
	} {
		l, err := c.forLease(test.opts)
		require.NoError(t, err)
		require.Equal(t, test.want, l.interval)
	}
	_, err = c.forLease([]LeaseOption{WithTTL(time.Second), WithExtendInterval(5 * time.Second)})
	require.ErrorContains(t, err, "WithExtendInterval: 5s leaves no room for two attempts within a TTL of 1s")

	c, err = newConfig([]Option{WithDrift(0.2), WithNodeTimeout(DefaultTTL / 4)})
	require.NoError(t, err, "the default leaves no room")
	l, err := c.forLease(nil)
	require.NoError(t, err)
	require.Equal(t, c.longestInterval(DefaultTTL), l.interval)
	require.Greater(t, l.interval, DefaultTTL/5)
}

// What the protocol rests on cannot be changed through a URL or a hook.
func TestClientOptionsThatAreNotNegotiable(t *testing.T) {
	c, err := newConfig([]Option{WithClientOption(func(_ string, o *valkey.ClientOption) {
		o.DisableRetry = false
		o.ConnLifetime = time.Minute
		o.PipelineMultiplex = 4
		o.BlockingPipeline = 2
		o.SendToReplicas = func(valkey.Completed) bool { return true }
		o.ReadNodeSelector = func(uint16, []valkey.NodeInfo) int { return 0 }
		o.ReplicaOnly, o.EnableReplicaAZInfo, o.AZFromInfo = true, true, true
		o.Standalone.EnableRedirect = true
		o.Standalone.ReplicaAddress = []string{"elsewhere:6379"}
		o.OnInvalidations = func([]valkey.ValkeyMessage) {}
		o.ClientName = "mine"
	})})
	require.NoError(t, err)
	o, err := c.nodeOption("valkey://user:secret@h:1234/3?max_retries=5")
	require.NoError(t, err)
	require.Equal(t, []string{"h:1234"}, o.InitAddress)
	require.Equal(t, "secret", o.Password)
	require.Equal(t, 3, o.SelectDB)
	require.Equal(t, "mine", o.ClientName)
	require.True(t, o.DisableRetry)
	require.True(t, o.DisableCache)
	require.True(t, o.ForceSingleClient)
	require.Zero(t, o.ConnLifetime)
	require.Equal(t, -1, o.PipelineMultiplex)
	require.Equal(t, -1, o.BlockingPipeline, "the default is 2,000 commands")
	require.Nil(t, o.SendToReplicas)
	require.Nil(t, o.ReadNodeSelector)
	require.Nil(t, o.OnInvalidations)
	require.False(t, o.ReplicaOnly || o.EnableReplicaAZInfo || o.AZFromInfo)
	require.Empty(t, o.Standalone)
	require.Equal(t, 2*time.Second, o.ConnWriteTimeout)
	require.Equal(t, 2*time.Second, o.Dialer.Timeout)
	_, err = c.nodeOption("unix:///tmp/no.sock?db=1")
	require.NoError(t, err)
	o, err = c.nodeOption("valkeys://h?skip_verify")
	require.NoError(t, err)
	require.Equal(t, "h", o.TLSConfig.ServerName)
}

// A new release of the client may bring options that the protocol depends on: nodeOption has to
// know of each.
func TestClientOptionsAreAllKnown(t *testing.T) {
	set := []string{"SendToReplicas", "ReadNodeSelector", "OnInvalidations", "Standalone", "ReplicaOnly",
		"EnableReplicaAZInfo", "AZFromInfo", "BlockingPipeline", "PipelineMultiplex", "ConnWriteTimeout",
		"ConnLifetime", "DisableRetry", "DisableCache", "DisableAutoPipelining", "ForceSingleClient", "Dialer", "DialCtxFn", "InitAddress", "AlwaysRESP2"}
	left := []string{"TLSConfig", "DialFn", "AuthCredentialsFn", "Sentinel", "Username", "Password", "ClientName",
		"ClientSetInfo", "SelectDB", "RingScaleEachConn", "ReadBufferEachConn", "WriteBufferEachConn", "BlockingPoolCleanup", "BlockingPoolSize",
		"BlockingPoolMinSize", "MaxFlushDelay", "DisableTCPNoDelay", "ClientNoTouch", "ClientNoEvict", "AlwaysPipelining",
		// Without a meaning when there is one server, no cache, and no retries.
		"NewCacheStoreFn", "ClientTrackingOptions", "CacheSizeEachConn", "RetryDelay", "ClusterOption", "ReplicaSelector", "ShuffleInit"}
	var fields []string
	for f := range reflect.TypeFor[valkey.ClientOption]().Fields() {
		fields = append(fields, f.Name)
	}
	require.ElementsMatch(t, append(set, left...), fields)
}

// Field: an expired grant returned as success when the round took longer than the TTL.
func TestTrap10LateGrantIsNotReturned(t *testing.T) {
	const ttl = 10 * time.Second
	cfg := &leaseConfig{ttl: ttl}
	require.NoError(t, tooLate("k", ttl/2, cfg))
	err := tooLate("k", ttl/2+1, cfg)
	require.ErrorIs(t, err, ErrTimeout)
	require.Equal(t, "timeout", ErrorType(err))
	require.ErrorContains(t, err, "took 5.000000001s")
}

func TestQuarantineOutlastsWhatAServerForgot(t *testing.T) {
	for _, test := range []struct {
		opts []Option
		want time.Duration
	}{
		{nil, 14 * time.Second}, // (10 s + 2 s) × 1.01 + 2 ms, rounded up, and one
		{[]Option{WithMaxTTL(time.Minute)}, 64 * time.Second},
		{[]Option{WithTTL(time.Second), WithClockSkew(time.Millisecond)}, 3 * time.Second},
		{[]Option{WithTTL(time.Second), WithClockSkew(10 * time.Second)}, 32 * time.Second}, // three skews
	} {
		c, err := newConfig(test.opts)
		require.NoError(t, err)
		require.Equal(t, test.want, c.quarantine())
		lifetime := roster.Lifetime(c.quarantine())
		require.GreaterOrEqual(t, lifetime, c.maxTTL+c.clockSkew)
		require.LessOrEqual(t, lifetime, c.quarantine()-time.Second, "less what is rounded")
	}
}

// A Quorum is as the variables say, and as an option does where there is one.
func TestFromEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "urls")
	require.NoError(t, os.WriteFile(file, []byte("# ours\nvalkeys://127.0.0.1:1?name=a\r\nvalkey://127.0.0.1:2, valkey://127.0.0.1:3"), 0o600))
	server := httptest.NewTLSServer(nil)
	server.Close()
	ca := filepath.Join(t.TempDir(), "ca")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	for name, value := range map[string]string{
		"TENURE_NODES": "", "TENURE_NODES_FILE": file, "TENURE_PREFIX": "billing", "TENURE_CLOCK_SKEW": "3s",
		"TENURE_WITH_REPLICAS": "true", "TENURE_WITHOUT_RESTART_GATE": "1", "TENURE_TLS_CA": ca, "TENURE_TLS_CERT": "", "TENURE_TLS_KEY": "",
	} {
		t.Setenv(name, value)
	}
	silent := WithLogger(slog.New(slog.DiscardHandler))
	q, err := FromEnv(silent)
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.Equal(t, "billing", q.cfg.prefix)
	require.Equal(t, 3*time.Second, q.cfg.clockSkew)
	require.True(t, q.cfg.acceptReplicas)
	require.False(t, q.cfg.restartGate)
	require.Len(t, q.nodes, 3)

	t.Setenv("TENURE_WITH_REPLICAS", "false")
	var trusting []bool
	q, err = FromEnv(silent, WithClockSkew(4*time.Second), WithClientOption(func(_ string, o *valkey.ClientOption) {
		trusting = append(trusting, o.TLSConfig != nil && o.TLSConfig.RootCAs != nil)
	}))
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.Equal(t, 4*time.Second, q.cfg.clockSkew)
	require.False(t, q.cfg.acceptReplicas)
	require.Equal(t, []bool{true, false, false}, trusting)
}

// What cannot be used is named, with the variable and without a password.
func TestFromEnvNamesTheVariable(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const some, secret = "valkey://a,valkey://b,valkey://c", "valkey://ann:s3cret@a"
	for _, of := range []struct {
		variables    map[string]string
		option, says string
	}{
		{nil, "TENURE_NODES", "TENURE_NODES_FILE to a file"},
		{map[string]string{"TENURE_NODES": some, "TENURE_NODES_FILE": "x"}, "TENURE_NODES", "set one of them"},
		{map[string]string{"TENURE_NODES": " , "}, "TENURE_NODES", "names no nodes"},
		{map[string]string{"TENURE_NODES": some + "," + secret + ":x"}, "TENURE_NODES", "urls[3] has a port"},
		{map[string]string{"TENURE_NODES_FILE": secret}, "TENURE_NODES_FILE", "is a URL, and has to be the name of a file"},
		{map[string]string{"TENURE_NODES_FILE": dir}, "TENURE_NODES_FILE", "no regular file"},
		{map[string]string{"TENURE_NODES_FILE": file("urls", secret+"\n"+secret)}, "TENURE_NODES_FILE", "urls[1] names the same node"},
		{map[string]string{"TENURE_PREFIX": "a{"}, "TENURE_PREFIX", "without { or }"},
		{map[string]string{"TENURE_CLOCK_SKEW": secret}, "TENURE_CLOCK_SKEW", "no duration"},
		{map[string]string{"TENURE_CLOCK_SKEW": "2m"}, "TENURE_CLOCK_SKEW", "between 1ms and 1m"},
		{map[string]string{"TENURE_WITH_REPLICAS": "yes"}, "TENURE_WITH_REPLICAS", "neither true nor false"},
		{map[string]string{"TENURE_WITHOUT_RESTART_GATE": "yes"}, "TENURE_WITHOUT_RESTART_GATE", "neither true nor false"},
		{map[string]string{"TENURE_TLS_CA": file("ca", "nothing")}, "TENURE_TLS_CA", "has no certificate"},
		{map[string]string{"TENURE_TLS_CERT": "x"}, "TENURE_TLS_CERT", "set TENURE_TLS_KEY, too"},
		{map[string]string{"TENURE_TLS_KEY": "x"}, "TENURE_TLS_KEY", "set TENURE_TLS_CERT, too"},
		{map[string]string{"TENURE_TLS_CERT": filepath.Join(dir, "none"), "TENURE_TLS_KEY": dir}, "TENURE_TLS_CERT", "no such file"},
		{map[string]string{"TENURE_TLS_CERT": file("crt", "x"), "TENURE_TLS_KEY": file("key", "s3cret")}, "TENURE_TLS_CERT, TENURE_TLS_KEY", "find any PEM"},
	} {
		t.Run(of.option+" "+of.says, func(t *testing.T) {
			for _, name := range []string{"TENURE_NODES", "TENURE_NODES_FILE", "TENURE_TLS_CA", "TENURE_TLS_CERT", "TENURE_TLS_KEY"} {
				t.Setenv(name, "")
			}
			if of.variables != nil && of.variables["TENURE_NODES_FILE"] == "" {
				t.Setenv("TENURE_NODES", some)
			}
			for name, value := range of.variables {
				t.Setenv(name, value)
			}
			q, err := FromEnv()
			require.Nil(t, q)
			var wrong *OptionError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, of.option, wrong.Option)
			require.Contains(t, wrong.Reason, of.says)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}
