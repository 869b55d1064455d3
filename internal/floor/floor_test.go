package floor_test

import (
	"strconv"
	"strings"
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

// A node that does not answer is waited for by nobody but Close.
func TestMajorityDoesNotWaitForTheRest(t *testing.T) {
	f, fleet := start(t, 3)
	require.NoError(t, fleet.Node(1).Freeze())
	require.NoError(t, f.Majority(set("value")))
	require.NoError(t, f.MajorityPipeline(func(c valkey.Client) valkey.Commands { return valkey.Commands{set("value")(c)} }))
	require.NoError(t, fleet.Node(1).Thaw())
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

func TestAllPipelineIsOnEveryNode(t *testing.T) {
	f, fleet := start(t, 5)
	require.NoError(t, f.AllPipeline(func(c valkey.Client) (some valkey.Commands) {
		for i := range 3000 { // valkey-go sends what is longer than 2,000 over a connection of its own
			some = append(some, c.B().Set().Key("key"+strconv.Itoa(i)).Value("value").Build())
		}
		return some
	}))
	require.Equal(t, 5, holding(t, fleet, "key0", "value"))
	require.Equal(t, 5, holding(t, fleet, "key2999", "value"))
}

// A pipeline whose last command fails has not been answered.
func TestPipelineFailsWithAnyOfItsCommands(t *testing.T) {
	f, _ := start(t, 3)
	wrong := func(c valkey.Client) valkey.Commands {
		return valkey.Commands{set("text")(c), c.B().Incr().Key("key").Build(), c.B().Get().Key("key").Build()}
	}
	require.ErrorContains(t, f.MajorityPipeline(wrong), "not an integer")
	require.ErrorContains(t, f.AllPipeline(wrong), "not an integer")
	require.ErrorContains(t, f.Majority(func(c valkey.Client) valkey.Completed { return c.B().Incr().Key("key").Build() }), "not an integer")
}

func TestOpenFails(t *testing.T) {
	_, err := floor.Open(nil)
	require.EqualError(t, err, "floor: no URLs: give that of each node")

	fleet := valkeytest.Start(t, 2)
	connections := func() int {
		clients, err := fleet.Node(0).Do(t, "CLIENT", "LIST").ToString()
		require.NoError(t, err)
		return strings.Count(clients, "laddr=")
	}
	before := connections()
	_, err = floor.Open([]string{fleet.Node(0).URL(), "gopher://host"})
	require.ErrorContains(t, err, "floor: cannot connect to node 2 of 2")
	require.Eventually(t, func() bool { return connections() == before }, 20*time.Second, time.Millisecond, "what it had opened is closed")
	require.NoError(t, fleet.Node(0).Kill())
	_, err = floor.Open(fleet.URLs())
	require.ErrorContains(t, err, "floor: cannot connect to node 1 of 2")
	require.ErrorContains(t, err, "connection refused")
}
