package redlock

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock/internal/node"
)

// A pipeline of any length goes over the one connection that is counted: valkey-go would take
// another one for 2,000 commands or more.
func TestPipelineOfAnyLengthIsOnOneConnection(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	c, err := newConfig(nil)
	require.NoError(t, err)
	o, err := c.nodeOption(n.URL())
	require.NoError(t, err)
	generation := 0
	client, err := node.NewClient(t.Context(), o, func() { generation++ })
	require.NoError(t, err)
	defer client.Close()
	const many = 5000
	var commands valkey.Commands
	for range many {
		commands = append(commands, client.B().Arbitrary("INCR", "count").Build())
	}
	id, err := client.Do(t.Context(), client.B().ClientId().Build()).AsInt64()
	require.NoError(t, err)
	for i, result := range client.DoMulti(t.Context(), append(commands, client.B().ClientId().Build())...) {
		answer, err := result.AsInt64()
		require.NoError(t, err)
		require.EqualValues(t, map[bool]int64{true: id, false: int64(i + 1)}[i == many], answer, "in order, over one connection")
	}
	require.Equal(t, 1, generation)
	require.NoError(t, n.Do(t, "CLIENT", "KILL", "ID", fmt.Sprint(id)).Error())
	require.Eventually(t, func() bool { return client.Do(t.Context(), client.B().ClientId().Build()).Error() == nil }, 2*time.Minute, time.Millisecond)
	require.Equal(t, 3, generation, "it has ended, and there is another one")
}
