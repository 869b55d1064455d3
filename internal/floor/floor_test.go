package floor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/floor"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, n int) (*floor.Floor, *valkeytest.Fleet) {
	t.Helper()
	fleet := valkeytest.Start(t, n)
	f, err := floor.Open(fleet.URLs())
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f, fleet
}

// holding counts the nodes on which key has value.
func holding(t *testing.T, fleet *valkeytest.Fleet, key, value string) (n int) {
	t.Helper()
	for _, node := range fleet.Nodes() {
		c := node.Client()
		if got, err := c.Do(t.Context(), c.B().Get().Key(key).Build()).ToString(); err == nil && got == value {
			n++
		}
	}
	return n
}

func set(value string) func(valkey.Client) valkey.Completed {
	return func(c valkey.Client) valkey.Completed { return c.B().Set().Key("key").Value(value).Nx().Build() }
}

func TestMajorityAsksEveryNode(t *testing.T) {
	f, fleet := start(t, 3)
	require.NoError(t, f.Majority(set("first")))
	require.GreaterOrEqual(t, holding(t, fleet, "key", "first"), 2)
	require.Eventually(t, func() bool { return holding(t, fleet, "key", "first") == 3 }, 20*time.Second, time.Millisecond)

	require.NoError(t, f.Majority(set("second")), "a refusal is an answer")
	require.Equal(t, 3, holding(t, fleet, "key", "first"))
}

func TestTooFewNodes(t *testing.T) {
	f, fleet := start(t, 3)
	one := func(c valkey.Client) valkey.Commands { return valkey.Commands{set("value")(c)} }
	require.NoError(t, fleet.Node(0).Kill())
	require.NoError(t, f.Majority(set("value")))
	require.NoError(t, f.MajorityPipeline(one))
	require.ErrorContains(t, f.AllPipeline(one), "floor: too few of 3 nodes answer")
	require.NoError(t, fleet.Node(2).Kill())
	require.ErrorContains(t, f.Majority(set("value")), "floor: too few of 3 nodes answer")
	require.ErrorContains(t, f.MajorityPipeline(one), "floor: too few of 3 nodes answer")
}
