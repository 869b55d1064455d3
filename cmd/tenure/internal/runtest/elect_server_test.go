package runtest

import (
	"context"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

var background = context.Background()

// One replica runs the command; the next takes over when it is told to end, and when it is killed
// or frozen, and two never run it at once. The first is a candidate again when it lives.
func TestElect(t *testing.T) {
	fleet, j := valkeytest.Start(t, 3), newJournal(t)
	candidate := func(name string) *started {
		return start(t, command(fleet, j.worker(roleSession, name), "elect", "api", "--ttl", "3s", "--payload", "http://"+name, "--", worker(t)))
	}
	a := candidate("a")
	j.await(t, "a", "beat", 1)
	q, err := redlock.Open(fleet.URLs(), redlock.WithoutRestartGate())
	require.NoError(t, err)
	defer q.Close()
	e, err := elector.New(q, "api")
	require.NoError(t, err)
	leader, err := e.Leader(background)
	require.NoError(t, err)
	require.Equal(t, "http://a", leader.Payload)

	b := candidate("b")
	require.NoError(t, a.Freeze())
	j.await(t, "b", "beat", 5)
	require.NoError(t, a.Thaw())
	c := candidate("c")
	require.NoError(t, syscall.Kill(b.Pid(), syscall.SIGKILL))
	require.Eventually(t, func() bool {
		leader, err := e.Leader(background)
		return err == nil && (leader.Payload == "http://a" || leader.Payload == "http://c")
	}, patience, poll)
	j.check(t)
	for _, s := range []*started{a, c} {
		require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGKILL))
	}
	require.Eventually(t, func() bool { return len(j.survivors(t)) == 0 }, patience, poll)
	j.check(t)
}

// A signal goes to the command, and ends elect with it; a candidate ends at once.
func TestElectEnds(t *testing.T) {
	fleet, j := valkeytest.Start(t, 3), newJournal(t)
	leader := start(t, command(fleet, j.worker(rolePlain, "leader"), "elect", "api", "--", worker(t)))
	j.await(t, "leader", "beat", 1)
	candidate := start(t, command(fleet, j.worker(rolePlain, "candidate"), "elect", "api", "--", worker(t)))
	require.Eventually(t, func() bool { return caught(candidate.Pid(), syscall.SIGTERM) }, patience, poll)
	require.NoError(t, syscall.Kill(candidate.Pid(), syscall.SIGTERM))
	require.Equal(t, 143, candidate.code(t), candidate.stderr())
	require.NoError(t, syscall.Kill(leader.Pid(), syscall.SIGTERM))
	require.Equal(t, 7, leader.code(t), "the command's code: %s", leader.stderr())
	require.Contains(t, leader.stderr(), "elected")
}

// A command that fails is run again, after longer and longer pauses; with --once its code is
// elect's.
func TestElectAgain(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	file := t.TempDir() + "/starts"
	s := start(t, command(fleet, []string{"STARTS=" + file}, "elect", "api", "--ttl", "3s", "--", "sh", "-c", `cut -d' ' -f1 /proc/uptime >> "$STARTS"; exit 9`))
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(file)
		return strings.Count(string(text), "\n") >= 3
	}, patience, poll)
	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGTERM))
	s.code(t)
	require.Regexp(t, regexp.MustCompile(`the command ended with exit code 9`), s.stderr())

	code, _, stderr := run(t, fleet, nil, "elect", "other", "--once", "--", "sh", "-c", "exit 9")
	require.Equal(t, 9, code, stderr)
	code, _, stderr = run(t, fleet, nil, "elect", "other", "--once", "--", "true")
	require.Zero(t, code, stderr)
	code, _, _ = run(t, fleet, nil, "elect", strings.Repeat("x", 2000), "--", "true")
	require.Equal(t, 64, code)
	code, _, _ = run(t, fleet, nil, "elect", "other", "--", "no-such-program")
	require.Equal(t, 127, code)
}
