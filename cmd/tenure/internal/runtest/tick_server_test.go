package runtest

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

type tickRun struct {
	tick    int64
	token   uint64
	attempt int
}

func readRuns(t *testing.T, file string) (runs []tickRun) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	for {
		var r tickRun
		if n, _ := fmt.Fscan(f, &r.tick, &r.token, &r.attempt); n != 3 {
			return runs
		}
		runs = append(runs, r)
	}
}

// Hosts that compute the tick by themselves, as from a crontab, run each period once.
func TestOncePer(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	file := t.TempDir() + "/runs"
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				code, _, stderr := run(t, fleet, []string{"RUNS=" + file}, "run", "job", "--once-per", "2s", "--", "sh", "-c",
					`echo "$TENURE_TICK $TENURE_FENCING_TOKEN $TENURE_ATTEMPT" >> "$RUNS"`)
				if code != 0 {
					t.Errorf("exit code %d: %s", code, stderr)
				}
			}
		})
	}
	wg.Wait()
	runs := readRuns(t, file)
	require.NotEmpty(t, runs)
	for i, r := range runs {
		require.Zero(t, r.tick%2000)
		require.True(t, i == 0 || r.tick > runs[i-1].tick, "each period once: %v", runs)
	}
}

func past(d time.Duration) string { return "--tick=" + time.Now().Add(-d).UTC().Format(time.RFC3339) }

// A command that fails has had its tick; at least once another host tries, and one that has waited
// meanwhile takes over.
func TestDelivery(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	tick := past(time.Minute)
	code, _, _ := run(t, fleet, nil, "run", "most", tick, "--", "sh", "-c", "exit 9")
	require.Equal(t, 9, code)
	code, out, _ := run(t, fleet, nil, "run", "most", tick, "--", "echo", "again")
	require.Zero(t, code)
	require.Empty(t, out)
	code, _, _ = run(t, fleet, nil, "run", "most", tick, "-E", "42", "--", "true")
	require.Equal(t, 42, code, "-E tells it")

	for attempt := 1; attempt <= 3; attempt++ {
		code, out, _ = run(t, fleet, nil, "run", "least", tick, "--at-least-once", "--", "sh", "-c", "echo $TENURE_ATTEMPT; exit 9")
		require.Equal(t, 9, code)
		require.Equal(t, fmt.Sprintln(attempt), out)
	}
	code, out, _ = run(t, fleet, nil, "run", "least", tick, "--at-least-once", "--", "echo", "a fourth time")
	require.Zero(t, code)
	require.Empty(t, out, "three attempts are enough")

	j := newJournal(t)
	first := start(t, command(fleet, j.worker(rolePlain, "first"), "run", "takeover", "--ttl", "2s", tick, "--at-least-once", "--", worker(t)))
	j.await(t, "first", "beat", 1)
	second := start(t, command(fleet, j.worker(rolePlain, "second", beatsVariable+"=3"), "run", "takeover", "--ttl", "2s", tick, "--at-least-once", "--", worker(t)))
	require.NoError(t, syscall.Kill(first.Pid(), syscall.SIGKILL))
	require.Zero(t, second.code(t), second.stderr())
	j.check(t)
	require.True(t, slices.ContainsFunc(j.records(t), func(r record) bool { return r.name == "second" && r.kind == "end" }))
}

// While one host runs the tick the others are done with it; a later tick waits for the earlier run.
func TestTickThatRuns(t *testing.T) {
	tick := past(time.Minute)
	fleet, _, holder := holds(t, rolePlain, "run", "job", tick)
	code, _, stderr := run(t, fleet, nil, "run", "job", tick, "--", "false")
	require.Zero(t, code, stderr)
	require.Empty(t, stderr, "cron mails whatever is said")
	code, _, stderr = run(t, fleet, nil, "run", "job", past(0), "--try", "--", "false")
	require.Equal(t, 75, code, stderr)
	code, _, stderr = run(t, fleet, nil, "run", "job", past(0), "--wait", "3s", "--", "false")
	require.Equal(t, 124, code, stderr)
	require.True(t, holder.Running())
}

// A host whose clock is far ahead takes no ticks of the future away.
func TestTickOfTheFuture(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	for _, of := range []struct {
		ahead time.Duration
		code  int
		says  string
	}{
		{50 * time.Second, 69, "ahead of the servers' clocks"},
		{time.Hour, 64, "no tick is granted before its time"}, // by its own
	} {
		code, out, stderr := waits(t, fleet, past(-of.ahead), "--", "echo", "run")
		require.Equal(t, of.code, code, stderr)
		require.Empty(t, out)
		require.Contains(t, stderr, of.says)
	}
}

// With one node down a tick is run, and cron has nothing to mail. Without a tick the log says it.
func TestTickBesideANodeThatIsDownSaysNothing(t *testing.T) {
	t.Parallel()
	fleet := valkeytest.Start(t, 3, valkeytest.WithAge(24*time.Hour))
	require.NoError(t, fleet.Node(0).Kill())
	for _, args := range [][]string{{"--once-per", "1h"}, {"--tick", "* * * * *"}} {
		code, _, stderr := run(t, fleet, nil, slices.Concat([]string{"run", "poll" + args[0], "--ttl", "60s", "--node-timeout", "15s"}, args, []string{"--", "sleep", "1"})...)
		require.Zero(t, code, stderr)
		require.Empty(t, stderr, "%v", args)
	}
	code, _, stderr := run(t, fleet, nil, "run", "plain", "--", "sleep", "1")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, fleet.Node(0).Addr())
}
