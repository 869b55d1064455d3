package valkeytest_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func TestMissingServerSaysHowToGetIt(t *testing.T) {
	t.Setenv("TENURE_VALKEY_SERVER", "no-such-valkey-server")
	_, err := valkeytest.New(1)
	require.ErrorContains(t, err, "`scripts/install.sh valkey`")
	require.NotContains(t, err.Error(), "\n")
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestServerThatEndsAtOnce(t *testing.T) {
	_, err := valkeytest.New(1, valkeytest.WithArgs("--no-such-directive", "1"))
	require.ErrorContains(t, err, "ended at once")
	require.ErrorContains(t, err, "no-such-directive", "with what it printed")
}

// What is done to a server happens to it.
func TestFaultsOfAServer(t *testing.T) {
	f := valkeytest.Start(t, 1, valkeytest.WithPersistence(), valkeytest.WithClock(), valkeytest.WithPassword("s3:c/r@t"), valkeytest.WithArgs("--databases", "3"))
	n := f.Nodes()[0]
	require.Contains(t, f.URLs()[0], n.Addr())
	require.NoError(t, n.Do(t, "SET", "k", "v", "PX", "600000").Error())
	require.NoError(t, n.Kill())
	require.NoError(t, n.Restart(true))
	require.Equal(t, []string{"k"}, n.Keys(t))
	require.NoError(t, n.JumpClock(time.Minute))
	at, err := n.Do(t, "TIME").AsIntSlice()
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(time.Minute), time.Unix(at[0], 0), 20*time.Second)

	require.NoError(t, n.Freeze())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, n.Client().Do(ctx, n.Client().B().Ping().Build()).Error(), context.DeadlineExceeded)
	require.NoError(t, n.Thaw())
	n.ResetStats(t)
	require.Equal(t, map[string]int64{"config|resetstat": 1}, n.CommandStats(t), "nothing is sent unasked")
	require.NoError(t, n.Stop())
	require.Zero(t, n.Pid())
	require.NoError(t, n.Restart(false))
	require.Empty(t, n.Keys(t))

	aged := valkeytest.Start(t, 1, valkeytest.WithAge(time.Hour)).Node(0)
	require.ErrorContains(t, aged.Restart(true), "WithPersistence")
	require.Eventually(t, func() bool {
		info, err := aged.Do(t, "INFO", "server").ToString()
		return err == nil && strings.Contains(info, "uptime_in_seconds:36")
	}, 10*time.Second, 5*time.Millisecond)
}
