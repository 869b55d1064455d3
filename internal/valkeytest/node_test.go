package valkeytest_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func TestMissingServerSaysHowToGetIt(t *testing.T) {
	t.Setenv("TENURE_VALKEY_SERVER", "no-such-valkey-server")
	_, err := valkeytest.New(1)
	require.ErrorContains(t, err, "`scripts/install.sh valkey`")
	require.NotContains(t, err.Error(), "\n")
}

func TestServerThatEndsAtOnce(t *testing.T) {
	_, err := valkeytest.New(1, valkeytest.WithArgs("--no-such-directive", "1"))
	require.ErrorContains(t, err, "ended at once")
	require.ErrorContains(t, err, "no-such-directive", "with what it printed")
}

func TestRestartWithoutData(t *testing.T) {
	f := valkeytest.Start(t, 1)
	n := f.Node(0)
	url, pid := n.URL(), n.Pid()
	require.NoError(t, n.Do(t, "SET", "k", "v").Error())
	sha, err := n.Do(t, "SCRIPT", "LOAD", "return 1").ToString()
	require.NoError(t, err)

	require.ErrorContains(t, n.Restart(true), "WithPersistence")
	require.Equal(t, pid, n.Pid(), "a refused restart changes nothing")
	require.NoError(t, n.Restart(false))
	require.Equal(t, url, n.URL())
	require.NotEqual(t, pid, n.Pid())
	require.Empty(t, n.Keys(t))
	verr, ok := valkey.IsValkeyErr(n.Do(t, "EVALSHA", sha, "0").Error())
	require.True(t, ok)
	require.True(t, verr.IsNoScript())
}

func TestRestartWithData(t *testing.T) {
	f := valkeytest.Start(t, 1, valkeytest.WithPersistence())
	n := f.Node(0)
	observer := n.Client()
	for i := range 50 {
		require.NoError(t, n.Do(t, "SET", "k", strconv.Itoa(i), "PX", "100000").Error())
		if i%25 == 0 {
			require.NoError(t, n.Kill())
			require.NoError(t, n.Restart(true))
			require.Equal(t, strconv.Itoa(i), get(t, n, "k"), "every acknowledged write is kept")
		}
	}
	require.NoError(t, n.Restart(true))
	require.Same(t, observer, n.Client())
	require.Equal(t, []string{"k"}, n.Keys(t))
	require.NoError(t, n.Stop())
	require.Zero(t, n.Pid())
	require.NoError(t, n.Restart(true))
	require.Equal(t, "49", get(t, n, "k"))
	require.NoError(t, n.Restart(false))
	require.Empty(t, n.Keys(t))
}

func TestFreezeAndThaw(t *testing.T) {
	f := valkeytest.Start(t, 1)
	n := f.Node(0)
	require.NoError(t, n.Do(t, "PING").Error())
	require.NoError(t, n.Freeze())
	require.NoError(t, n.Freeze())
	conn, err := net.Dial("tcp", n.Addr())
	require.NoError(t, err, "the kernel accepts")
	require.NoError(t, conn.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	c := n.Client()
	require.ErrorIs(t, c.Do(ctx, c.B().Set().Key("late").Value("v").Px(time.Minute).Build()).Error(), context.DeadlineExceeded)

	require.NoError(t, n.Thaw())
	require.NoError(t, n.Thaw())
	require.Eventually(t, func() bool {
		v, err := n.Do(t, "GET", "late").ToString()
		return err == nil && v == "v"
	}, 10*time.Second, time.Millisecond, "what arrived while the server was stopped runs")
}

func TestRestartReportsTakenPort(t *testing.T) {
	f := valkeytest.Start(t, 1)
	n := f.Node(0)
	require.NoError(t, n.Kill())
	thief, err := net.Listen("tcp", n.Addr())
	require.NoError(t, err)
	restarted := make(chan error, 1)
	go func() { restarted <- n.Restart(false) }()
	conn, err := thief.Accept() // the probe
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, thief.Close())
	require.NoError(t, <-restarted, "Restart waits until the port is free")
	require.NoError(t, n.Do(t, "PING").Error())
}

func TestCommandStats(t *testing.T) {
	f := valkeytest.Start(t, 1)
	n := f.Node(0)
	for range 3 {
		require.NoError(t, n.Do(t, "EVAL", "return redis.call('INCR', KEYS[1])", "1", "k").Error())
	}
	require.NoError(t, n.Do(t, "CLIENT", "ID").Error())
	stats := n.CommandStats(t)
	require.EqualValues(t, 3, stats["eval"])
	require.EqualValues(t, 3, stats["incr"])
	require.EqualValues(t, 1, stats["client|id"])
	n.ResetStats(t)
	require.Equal(t, map[string]int64{"config|resetstat": 1}, n.CommandStats(t), "nothing is sent unasked")
}

func TestOptions(t *testing.T) {
	f := valkeytest.Start(t, 1, valkeytest.WithPassword("s3:c/r@t"), valkeytest.WithArgs("--maxmemory", "2mb"), valkeytest.WithArgs("--databases", "3"))
	n := f.Node(0)
	require.NoError(t, n.Restart(false), "and again with the password")
	config, err := n.Do(t, "CONFIG", "GET", "maxmemory", "databases", "appendonly").AsStrMap()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"maxmemory": "2097152", "databases": "3", "appendonly": "no"}, config)

	o := valkey.MustParseURL(n.URL())
	o.ForceSingleClient = true
	c, err := valkey.NewClient(o)
	require.NoError(t, err, "the URL has the password")
	c.Close()
	o.Password = ""
	c, err = valkey.NewClient(o)
	require.ErrorContains(t, err, "NOAUTH")
	c.Close()
}

func get(t *testing.T, n *valkeytest.Node, key string) string {
	t.Helper()
	v, err := n.Do(t, "GET", key).ToString()
	require.NoError(t, err)
	return v
}
