//go:build long

package runtest

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// Whatever happens to tenure and to its watchdog, one at a time, and whatever the command does, the
// command and all that it has started are dead before the deadline, and before another has the
// lease.
func TestCommandNeverOutlivesTheLease(t *testing.T) {
	for _, f := range faults {
		for _, role := range []string{rolePlain, roleDeaf, roleStops, roleForks, roleSession, roleDaemon} {
			t.Run(f.name+"/"+role, func(t *testing.T) {
				t.Parallel()
				fleet, j := valkeytest.Start(t, 3), newJournal(t)
				s := start(t, command(fleet, j.worker(role, "first"), "run", "lease", "--ttl", "3s", "--", worker(t)))
				switch role {
				case roleForks, roleSession, roleDaemon:
					j.await(t, "first", "begin", 2)
				case roleStops:
					j.await(t, "first", "beat", 20)
				default:
					j.await(t, "first", "beat", 5)
				}
				begin := func() *started {
					return start(t, command(fleet, j.worker(rolePlain, "second", beatsVariable+"=20"), "run", "lease", "--ttl", "3s", "--", worker(t)))
				}
				var second *started
				if !f.forgets {
					second = begin()
				}
				f.strike(t, s, fleet)
				require.Eventually(t, func() bool {
					return !slices.ContainsFunc(j.records(t), func(r record) bool { return r.name[:5] == "first" && lives(r.pid) })
				}, patience, time.Millisecond)
				if f.after != nil {
					f.after(t, s, fleet)
				}
				if f.forgets {
					second = begin()
				}
				require.Equal(t, f.code, s.code(t), s.stderr())
				require.Contains(t, s.stderr(), f.says)
				j.await(t, "second", "end", 1)
				require.Zero(t, second.code(t), second.stderr())
				t.Logf("the deadline was kept by %v", j.check(t))
				require.Empty(t, j.survivors(t))
				if role == rolePlain && f.code == 74 {
					require.True(t, slices.ContainsFunc(j.records(t), func(r record) bool { return r.kind == "signal-15" }), "it was told")
				}
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
	}, patience, 5*time.Millisecond)
}
