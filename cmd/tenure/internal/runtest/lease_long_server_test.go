//go:build long

package runtest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// Whatever happens to tenure and to its watchdog, one at a time, and whatever the command does, the
// command and all that it has started are dead before the deadline, and before another has the
// lease.
func TestCommandNeverOutlivesTheLease(t *testing.T) {
	for i, f := range faults {
		other := roles[1+i%(len(roles)-1)]
		for _, role := range []string{rolePlain, other} {
			t.Run(f.name+"/"+role, func(t *testing.T) {
				t.Parallel()
				neverOutlives(t, f, role)
			})
		}
	}
}

// A command that kills tenure and ends leaves no directory behind, although the watchdog sees its
// end before that of tenure.
func TestNothingIsLeftOfATenureThatDiesWithItsCommand(t *testing.T) {
	fleet, temporary := valkeytest.Start(t, 3), t.TempDir()
	for range 10 {
		code, _, _ := run(t, fleet, []string{"TMPDIR=" + temporary}, "run", "lease", "--ttl", "2s", "--", "sh", "-c",
			`read -r dog name state tenure rest < /proc/$PPID/stat; ls -d "$TMPDIR"/tenure-* > /dev/null || exit 1; kill -KILL "$tenure"`)
		require.Equal(t, -1, code)
	}
	require.Eventually(t, func() bool {
		left, err := os.ReadDir(temporary)
		return err == nil && len(left) == 0
	}, patience, poll)
}

// Nodes that hang are no quorum, and the error says which: an attempt that has not ended when
// --wait has passed tells nothing.
func TestNodesThatHang(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	freezeNodes(t, fleet)
	defer thawNodes(t, fleet)
	for _, wait := range [][]string{{"--wait", "1s"}, {"--once-per", "1h"}} {
		code, _, stderr := run(t, fleet, nil, append([]string{"run", "a"}, append(wait, "--", "true")...)...)
		require.Equal(t, 69, code, "%v: %s", wait, stderr)
		require.Contains(t, stderr, "no quorum")
		require.Contains(t, stderr, fleet.Node(0).Addr())
		require.Contains(t, stderr, "tenure doctor says what is wrong")
	}
}
