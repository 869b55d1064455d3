package node

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A request that is to be sent alone shares a command with none of those before or after it.
func TestGroupsAroundOneThatIsAlone(t *testing.T) {
	request := func(key string, alone bool) *Request {
		return &Request{Call: callOf(wire.Acquire, key), alone: alone}
	}
	n, c := voting(t)
	for _, test := range []struct {
		alone []bool
		sizes []int
	}{
		{[]bool{false, false, false}, []int{3}},
		{[]bool{false, true, false}, []int{1, 1, 1}},
		{[]bool{true, false, false}, []int{1, 2}},
		{[]bool{false, false, true}, []int{2, 1}},
	} {
		var requests []*Request
		for i, alone := range test.alone {
			requests = append(requests, request(string(rune('a'+i)), alone))
		}
		b := &batch{client: c}
		n.encode(b, requests)
		require.Equal(t, test.sizes, b.sizes, "%v", test.alone)
		require.Len(t, b.commands, len(test.sizes))
		require.Equal(t, len(requests), b.leases)
	}
}
