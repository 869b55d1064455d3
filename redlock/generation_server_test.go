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
	ids := make(map[int64]bool)
	commands := make(valkey.Commands, 0, many+2)
	for range cap(commands) {
		commands = append(commands, client.B().Arbitrary("INCR", "count").Build())
	}
	commands[0], commands[many+1] = client.B().ClientId().Build(), client.B().ClientId().Build()
	for i, result := range client.DoMulti(t.Context(), commands...) {
		answer, err := result.AsInt64()
		require.NoError(t, err)
		if i == 0 || i == many+1 {
			ids[answer] = true
		} else {
			require.EqualValues(t, i, answer, "in order")
		}
	}
	require.Len(t, ids, 1)
	require.Equal(t, 1, generation)
	require.NoError(t, n.Do(t, "CLIENT", "KILL", "ID", fmt.Sprint(anyOf(ids))).Error())
	require.Eventually(t, func() bool { return client.Do(t.Context(), client.B().ClientId().Build()).Error() == nil }, 2*time.Minute, time.Millisecond)
	require.Equal(t, 3, generation, "it has ended, and there is another one")
}

func anyOf(ids map[int64]bool) int64 {
	for id := range ids {
		return id
	}
	return 0
}
