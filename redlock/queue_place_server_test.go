package redlock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// An attempt that is rolled back keeps its place in the queue, by itself and among others. A lease that is released has none.
func TestRollbackKeepsThePlace(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	release := func(key string, args *arguments) *request {
		require.NoError(t, n.Do(t, "SET", key, "o", "PX", "60000").Error())
		require.NoError(t, n.Do(t, "ZADD", key+":wait", "1", pairMembers[0]).Error())
		at := &attempt{keys: &keyset{lock: key, wait: key + ":wait"}, owner: "o", member: pairMembers[0], cfg: leaseConfig{ttl: time.Minute}}
		return &request{op: OpRelease, attempt: at, args: args}
	}
	for _, test := range []struct {
		name string
		args *arguments
		left int64
	}{
		{"rolled back", &arguments{keep: "0", record: recordUndo, stays: true}, 1},
		{"released", &arguments{keep: "0", turn: "1000", channel: "call:"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			packet := []*request{release("{a}", test.args), release("{b}", test.args)}
			command, _ := packet[0].command(n.Client(), nil, true, "", nil)
			rep, err := packet[0].parse(n.Client().Do(t.Context(), command).ToMessage())
			require.NoError(t, err)
			require.Equal(t, agreed, rep.verdict)
			packet[0] = release("{c}", test.args)
			command, _ = parcel(n.Client(), nil, packet, true, "", nil)
			for _, a := range open(packet, n.Client().Do(t.Context(), command), 0, nil) {
				require.NoError(t, a.err)
				require.Equal(t, agreed, a.verdict)
			}
			for _, key := range []string{"{a}", "{b}", "{c}"} {
				left, err := n.Do(t, "ZCARD", key+":wait").AsInt64()
				require.NoError(t, err)
				require.Equal(t, test.left, left, key)
				exists, err := n.Do(t, "EXISTS", key).AsInt64()
				require.NoError(t, err)
				require.Zero(t, exists, key)
			}
		})
	}
}
