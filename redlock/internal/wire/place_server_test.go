package wire

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// An attempt that is rolled back keeps its place in the queue, by itself and among others. A lease
// that is released has none.
func TestRollbackKeepsThePlace(t *testing.T) {
	t.Parallel()
	n := valkeytest.Start(t, 1).Node(0)
	release := func(key string, how Call) *Call {
		require.NoError(t, n.Do(t, "SET", key, "1 o", "PX", "60000").Error())
		require.NoError(t, n.Do(t, "ZADD", key+":wait", "1", pairMembers[0]).Error())
		how.Op, how.Keys, how.Lock, how.Member = Release, &Keys{Lock: key, Fences: "fences"}, "1 o", pairMembers[0]
		require.NoError(t, n.Do(t, "HSET", "fences", "queues", strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10)).Error())
		return &how
	}
	for _, test := range []struct {
		name string
		how  Call
		left int64
	}{
		{"rolled back", Call{Keep: "0", Stays: true}, 1},
		{"released", Call{Keep: "0", Turn: "1000", Channel: "call:"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			alone := ask(t, n.Client(), nil, release("{a}", test.how))[0]
			require.NoError(t, alone.Err)
			require.Equal(t, OK, alone.Verdict)
			for _, a := range ask(t, n.Client(), nil, release("{b}", test.how), release("{c}", test.how)) {
				require.NoError(t, a.Err)
				require.Equal(t, OK, a.Verdict)
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
