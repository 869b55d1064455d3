package runtest

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// fault is what happens to a tenure that runs a command.
type fault struct {
	name string
	// strike does it. The fleet is the test's own.
	strike func(t *testing.T, s *started, fleet *valkeytest.Fleet)
	// after is called when all workers of the first tenure are dead.
	after func(t *testing.T, s *started, fleet *valkeytest.Fleet)
	code  int // of the tenure that was struck; -1 if it was killed
	says  string
	// forgets means that running nodes forget the lease. No lease is promised then: another tenure
	// may have it before this one hears of it. So the other one begins afterwards.
	forgets bool
}

func freezeNodes(t *testing.T, fleet *valkeytest.Fleet) {
	for _, n := range fleet.Nodes()[:2] {
		require.NoError(t, n.Freeze())
	}
}

func thawNodes(t *testing.T, fleet *valkeytest.Fleet) {
	for _, n := range fleet.Nodes() {
		require.NoError(t, n.Thaw())
	}
}

var faults = []fault{
	{
		name:   "the nodes are frozen",
		strike: func(t *testing.T, _ *started, fleet *valkeytest.Fleet) { freezeNodes(t, fleet) },
		after:  func(t *testing.T, _ *started, fleet *valkeytest.Fleet) { thawNodes(t, fleet) },
		code:   74, says: "lease",
	},
	{
		name: "the keys are deleted",
		strike: func(t *testing.T, _ *started, fleet *valkeytest.Fleet) {
			for _, n := range fleet.Nodes() {
				require.NoError(t, n.Do(t, "FLUSHALL").Error())
			}
		},
		code: 74, says: "no longer holds it", forgets: true,
	},
	{
		name: "tenure is killed",
		strike: func(t *testing.T, s *started, _ *valkeytest.Fleet) {
			require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGKILL))
		},
		code: -1, says: "tenure has died",
	},
	{
		name:   "tenure is frozen",
		strike: func(t *testing.T, s *started, _ *valkeytest.Fleet) { require.NoError(t, s.Freeze()) },
		after:  func(t *testing.T, s *started, _ *valkeytest.Fleet) { require.NoError(t, s.Thaw()) },
		code:   74, says: "lease",
	},
	{
		name: "the watchdog is killed",
		strike: func(t *testing.T, s *started, _ *valkeytest.Fleet) {
			require.NoError(t, syscall.Kill(s.watchdog(t), syscall.SIGKILL))
		},
		code: 71, says: "the watchdog has ended",
	},
	{
		name: "the watchdog is frozen, and so are the nodes",
		strike: func(t *testing.T, s *started, fleet *valkeytest.Fleet) {
			require.NoError(t, syscall.Kill(s.watchdog(t), syscall.SIGSTOP))
			freezeNodes(t, fleet)
		},
		after: func(t *testing.T, _ *started, fleet *valkeytest.Fleet) { thawNodes(t, fleet) },
		code:  74, says: "the watchdog was stopped, and is continued",
	},
	{
		name: "the watchdog is frozen, and tenure is killed",
		strike: func(t *testing.T, s *started, _ *valkeytest.Fleet) {
			require.NoError(t, syscall.Kill(s.watchdog(t), syscall.SIGSTOP))
			require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGKILL))
		},
		code: -1, says: "tenure has died",
	},
}

// With both of them killed at once, nobody is left but the kernel: the command dies with its
// watchdog.
func TestBothKilled(t *testing.T) {
	_, j, s := holds(t, roleDeaf, "run", "lease", "--ttl", "3s")
	j.await(t, "first", "beat", 5)
	dog := s.watchdog(t)
	require.NoError(t, s.Freeze())
	require.NoError(t, syscall.Kill(dog, syscall.SIGKILL))
	require.NoError(t, s.Kill())
	require.Eventually(t, func() bool { return len(j.survivors(t)) == 0 }, patience, poll)
	j.check(t)
}

// A command that ends and leaves processes behind ends them too, before its lease is released.
func TestNothingIsLeftBehind(t *testing.T) {
	fleet, j, s := holds(t, roleLeaves, "run", "lease", "--ttl", "3s")
	j.await(t, "first", "beat", 2)
	second := start(t, command(fleet, j.worker(rolePlain, "second", beatsVariable+"=5"), "run", "lease", "--ttl", "3s", "--", worker(t)))
	require.Zero(t, s.code(t), s.stderr())
	require.Contains(t, s.stderr(), "left 1 process(es) behind")
	require.Zero(t, second.code(t))
	j.check(t)
	require.Empty(t, j.survivors(t))
}

// While the nodes answer, a command may take many times the TTL, also stopped.
func TestLeaseIsKept(t *testing.T) {
	fleet, j := valkeytest.Start(t, 3), newJournal(t)
	environ := j.worker(rolePlain, "first", beatsVariable+"=1000", codeVariable+"=5")
	s := start(t, command(fleet, environ, "run", "lease", "--ttl", "1s", "--", worker(t)))
	require.Equal(t, 5, s.code(t), s.stderr())
	records := j.records(t)
	require.Greater(t, records[len(records)-1].at-records[0].at, 3*time.Second)
	j.check(t)
}

// A process that starts others without end is killed with all of them.
func TestForkStorm(t *testing.T) {
	_, j, s := holds(t, roleStorm, "run", "lease", "--ttl", "3s")
	j.await(t, "first", "begin", 10)
	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGKILL))
	require.Eventually(t, func() bool { return len(j.survivors(t)) == 0 }, patience, poll)
	j.check(t)
}

// roles are what commands do about their end.
var roles = []string{rolePlain, roleDeaf, roleStops, roleForks, roleSession, roleDaemon}

// neverOutlives has one hold the lease when something happens, and another want it.
func neverOutlives(t *testing.T, f fault, role string) {
	t.Helper()
	fleet, j, s := holds(t, role, "run", "lease", "--ttl", "3s")
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
	}, patience, poll)
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
}
