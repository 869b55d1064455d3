package valkeytest_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
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

var _ redlocktest.Faults = (*valkeytest.Node)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
