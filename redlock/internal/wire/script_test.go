package wire

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/bridge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Field: PXAT from the client's wall clock. Expiry on the server is relative, always.
func TestTrap09ExpiryIsRelative(t *testing.T) {
	for _, s := range NewSet("id").Scripts() {
		require.NotContains(t, strings.ToUpper(s.text), "PXAT")
		require.NotContains(t, strings.ToUpper(s.text), "EXAT")
		require.NotContains(t, strings.ToUpper(s.text), "EXPIREAT")
	}
	require.Contains(t, table[Acquire].script.text, "redis.call('SET', KEYS[1], lock, 'PX', ARGV[2])")
}

// Comments cost no server anything.
func TestScriptsAreSentWithoutComments(t *testing.T) {
	for _, s := range NewSet(strings.Repeat("0", RunIDLength)).Scripts() {
		require.NotContains(t, s.text, "\n--")
		require.NotContains(t, s.text, "include")
	}
}

// Each operation is in the table, with all that a command needs, and a name that no other has but
// for what an extension, a look and a question are.
func TestEveryOperationIsInTheTable(t *testing.T) {
	names := make(map[string][]Op)
	for op := range ops {
		r := table[op]
		require.NotEmpty(t, r.name, "operation %d", op)
		require.NotNil(t, r.answer, r.name)
		require.Equal(t, r.script == nil, r.command != nil || r.guest, r.name)
		require.Equal(t, r.command != nil, op == Info || op == Time, r.name)
		require.Equal(t, r.guest, slices.Contains([]Op{Guest, GuestReading, GuestAnywhere, ReadingAnywhere}, op), r.name)
		require.Equal(t, r.command != nil, r.keys == nil || r.args == nil, r.name)
		names[r.name] = append(names[r.name], op)
	}
	require.Equal(t, []Op{Extend, ExtendMany}, names["extend"])
	require.Equal(t, []Op{Observe, Info, Time}, names["observe"])
	require.Len(t, names, int(ops)-6)
}

// What is sent as an operation that only reads is right for a user who may only read, see
// TestReader of package redlock.
func TestReadingOperations(t *testing.T) {
	var reading []Op
	for op := range ops {
		if r := &table[op]; r.reads {
			reading = append(reading, op)
			require.False(t, r.grants || r.frees, r.name)
		}
	}
	require.Equal(t, []Op{Observe, GuestReading, ReadingAnywhere}, reading)
}

// A process that has no vote is asked with texts of its own for nothing but what only reads.
func TestScriptsForReading(t *testing.T) {
	set := NewSet(strings.Repeat("0", RunIDLength))
	reading := set.Reading()
	for op := range ops {
		if r := &table[op]; r.reads {
			require.Equal(t, set.script(op), reading.script(op), r.name)
		} else {
			require.Equal(t, r.script, reading.script(op), r.name)
		}
	}
	require.Nil(t, reading.pairs)
}

// A process has texts of its own for what grants or puts a key back, and no other process knows
// them.
func TestScriptsOfAProcess(t *testing.T) {
	one, other := NewSet(strings.Repeat("0", RunIDLength)), NewSet(strings.Repeat("1", RunIDLength))
	for op := range ops {
		r := &table[op]
		require.True(t, !r.gated || r.own, r.name)
		if r.script == nil {
			continue
		}
		require.Equal(t, r.own, one.script(op).sha != other.script(op).sha, r.name)
		require.Equal(t, r.own, one.script(op).sha != (*Set)(nil).script(op).sha, r.name)
		require.Equal(t, !r.gated, slices.Contains(Ungated(), r.script), r.name)
		require.Contains(t, one.Scripts(), one.script(op), r.name)
	}
	require.NotEqual(t, one.pairs.sha, other.pairs.sha)

	guest := &Call{Op: GuestReading, Guest: &bridge.Call{Script: bridge.NewScript("-- a comment\nreturn {process}\n")}}
	require.NotEqual(t, one.scriptOf(guest).sha, other.scriptOf(guest).sha)
	require.Same(t, one.scriptOf(guest), one.scriptOf(guest))
	require.Contains(t, one.Scripts(), one.scriptOf(guest))
	require.Equal(t, one.scriptOf(guest).sha, one.Reading().scriptOf(guest).sha)
	require.Contains(t, AnyProcess.scriptOf(guest).text, "local process = ''\n")
	require.NotContains(t, one.scriptOf(guest).text, "comment")
}

func TestServerTimeIsBounded(t *testing.T) {
	for _, bad := range [][2]int64{{-1, 0}, {1 << 62, 0}, {0, -1}, {0, 1_000_000}} {
		_, err := ServerTime(bad[0], bad[1])
		require.Error(t, err)
	}
	got, err := ServerTime(1_780_000_000, 5)
	require.NoError(t, err)
	require.Equal(t, time.Unix(1_780_000_000, 5000), time.Unix(0, int64(got)))
}

// What a server takes for something that may write, and holds back in a CLIENT PAUSE WRITE, is what
// is sent as EVALSHA.
func TestWhatMayWrite(t *testing.T) {
	for op := range ops {
		require.Equal(t, op != Info && op != Time && !op.Reads(), op.Writes(), "%v", op)
	}
	require.True(t, Trial.Writes())
	require.False(t, Observe.Writes())
}
