package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Field: PXAT from the client's wall clock. Expiry on the server is relative, always.
func TestTrap09ExpiryIsRelative(t *testing.T) {
	for _, s := range append(NewSet("id").Scripts(), Ungated...) {
		require.NotContains(t, strings.ToUpper(s.text), "PXAT")
		require.NotContains(t, strings.ToUpper(s.text), "EXAT")
		require.NotContains(t, strings.ToUpper(s.text), "EXPIREAT")
	}
	require.Contains(t, acquireScript.text, "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])")
}

// Comments cost no server anything, nor do the names of the mutants of a line.
func TestScriptsAreSentWithoutComments(t *testing.T) {
	for _, s := range append(NewSelfChecking(strings.Repeat("0", RunIDLength)).Scripts(), Ungated...) {
		require.NotContains(t, s.text, "mutant:")
		require.NotContains(t, s.text, "\n--")
		require.NotContains(t, s.text, "include")
	}
}

// Each operation is in the table, with all that a command needs, and a name that no other has but
// for what an extension and a look are.
func TestEveryOperationIsInTheTable(t *testing.T) {
	names := make(map[string][]Op)
	for op := range ops {
		r := table[op]
		require.NotEmpty(t, r.name, "operation %d", op)
		require.NotNil(t, r.answer, r.name)
		require.Equal(t, r.script == nil, op == Info || op == Time, r.name)
		require.Equal(t, r.script == nil, r.keys == nil || r.args == nil, r.name)
		names[r.name] = append(names[r.name], op)
	}
	require.Equal(t, []Op{Extend, ExtendMany}, names["extend"])
	require.Equal(t, []Op{Observe, Info, Time}, names["observe"])
	require.Len(t, names, int(ops)-3)
}
