package redlock

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// refusing is a node that takes no requests.
type refusing struct{ fakeNode }

func (*refusing) Send(*node.Request) error { return node.ErrOverloaded }

// An operation is used again when its maker has dropped it and every node that was asked has
// answered, in whatever order that comes, and not before.
func TestOperationIsUsedAgainWhenAllHaveAnswered(t *testing.T) {
	for range 50 {
		q := testQuorum(5)
		q.nodes[4].link = &refusing{}
		at := &attempt{keys: &wire.Keys{Name: "key", Lock: "key"}, cfg: &q.cfg.plain}
		o := q.newOperation(OpRelease, q.need)
		o.send(t.Context(), at, at.call(wire.Release), clock.Instant(1), nil)
		steps := []func(){o.drop}
		for i := range 4 {
			steps = append(steps, func() { q.fake(i).answer(0, wire.Answer{Verdict: wire.OK}, nil) })
		}
		rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, step := range steps {
			require.NotNil(t, o.q)
			step()
		}
		require.Nil(t, o.q, "it has nothing of its last user")
		o = q.newOperation(OpAcquire, 1)
		require.Equal(t, 0, o.Tally().Agreed)
		require.False(t, o.IsOver())
	}
	(*operation)(nil).drop()
}

// Nodes that were asked keep their call when others are asked something else.
func TestOperationOfTwoCalls(t *testing.T) {
	q := testQuorum(3)
	at := &attempt{keys: &wire.Keys{Name: "key", Lock: "key"}, cfg: &q.cfg.plain}
	o := q.newOperation(OpLeave, q.need)
	for i, hint := range []string{"1", "2", "3"} {
		call := at.call(wire.Leave)
		call.Hint = hint
		o.send(t.Context(), at, call, clock.Instant(1), func(node int) bool { return node == i })
	}
	for i, hint := range []string{"1", "2", "3"} {
		require.Equal(t, hint, q.fake(i).sent[0].Call.Hint)
	}
}
