package redlock

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/resp"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// What a server says before it ends a connection tells more than that nobody asked for it.
func TestConditionOfARefusal(t *testing.T) {
	for said, want := range map[string]Condition{
		"ERR max number of clients reached":   Condition(wire.TooManyUsers),
		"DENIED Redis is in protected mode":   Condition(wire.Protected),
		"ERR something that nobody has heard": Condition(wire.BadReply),
		"":                                    Condition(wire.BadReply),
	} {
		err := testQuorum(1).nodes[0].known(wire.Diagnose(&resp.Error{What: "a reply to no command", Said: said}))
		require.Equal(t, string(want), ErrorType(err), "%q", said)
		require.ErrorContains(t, err, said)
		require.False(t, wire.IsServerError(err), "it has not answered")
	}
}
