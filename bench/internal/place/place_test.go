package place_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// toxiproxy leaves goroutines behind, see clients.Tests of tools/torture.
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}

func TestServers(t *testing.T) {
	ctx := t.Context()
	s := &place.Servers{Fleet: valkeytest.Start(t, 2)}
	version, err := s.Version(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, version)

	far := time.Now().Add(time.Hour)
	for _, n := range s.Nodes() {
		require.NoError(t, n.Do(t, "SET", "k", "v", "PXAT", strconv.FormatInt(far.UnixMilli(), 10)).Error())
		require.NoError(t, n.Do(t, "ZADD", "tenure:fences", "1", "1").Error())
		far = far.Add(time.Minute)
	}
	locks, err := s.Locks(ctx, s.Nodes())
	require.NoError(t, err)
	require.Equal(t, 2, locks)
	first, err := s.Expiry(ctx, "k", 2, 1)
	require.NoError(t, err)
	second, err := s.Expiry(ctx, "k", 2, 2)
	require.NoError(t, err)
	require.Equal(t, time.Minute, second.Sub(first))
	_, err = s.Expiry(ctx, "nothing", 2, 2)
	require.ErrorContains(t, err, "too few servers")

	unfilled, err := s.CPU(ctx)
	require.NoError(t, err)
	require.Positive(t, unfilled)
	require.NoError(t, s.Fill(ctx, 1500))
	filled, err := s.CPU(ctx)
	require.NoError(t, err)
	require.Greater(t, filled, unfilled)
	locks, err = s.Locks(ctx, s.Nodes()[:1])
	require.NoError(t, err)
	require.Equal(t, 1501, locks)
	require.NoError(t, s.Flush(ctx))
	locks, err = s.Locks(ctx, s.Nodes())
	require.NoError(t, err)
	require.Zero(t, locks)
}
