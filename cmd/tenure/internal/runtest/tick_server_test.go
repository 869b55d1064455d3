package runtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// ticksVariable is how many ticks TestOneRunATick has.
const ticksVariable = "TENURE_TEST_TICKS"

// hosts is how many run each tick.
const hosts = 10

// quorumFaults strike one node of five at a time, which a quorum does without.
var quorumFaults = []struct {
	name         string
	strike, heal func(n *valkeytest.Node) error
}{
	{"killed", (*valkeytest.Node).Kill, func(n *valkeytest.Node) error { return n.Restart(false) }},
	{"frozen", (*valkeytest.Node).Freeze, (*valkeytest.Node).Thaw},
	{"cut", cut, func(*valkeytest.Node) error { return nil }},
	{"none", func(*valkeytest.Node) error { return nil }, func(*valkeytest.Node) error { return nil }},
}

// cut ends the connections that a node has, in the middle of whatever they carry.
func cut(n *valkeytest.Node) error {
	return n.Client().Do(background, n.Client().B().Arbitrary("CLIENT", "KILL", "TYPE", "normal").Build()).Error()
}

// Ten hosts run each tick at once, while nodes are killed, frozen and cut: one run a tick, and all
// exit codes are 0.
func TestOneRunATick(t *testing.T) {
	ticks := 60
	if text := os.Getenv(ticksVariable); text != "" {
		var err error
		ticks, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	fleet := valkeytest.Start(t, 5)
	file := t.TempDir() + "/runs"
	base := time.Now().Add(-time.Duration(ticks) * time.Second).Truncate(time.Second)
	codes, faults := map[int]int{}, map[string]int{}
	var longest time.Duration
	for n := range ticks {
		at := base.Add(time.Duration(n) * time.Second)
		victim, fault := fleet.Node(rand.IntN(5)), quorumFaults[rand.IntN(len(quorumFaults))]
		faults[fault.name]++
		began := time.Now()
		all := make([]*started, hosts)
		for i := range all {
			all[i] = start(t, command(fleet, []string{"RUNS=" + file}, "run", "job", "--ttl", "4s", "--tick="+at.UTC().Format(time.RFC3339), "--wait", "60s", "--",
				"sh", "-c", `echo "$TENURE_TICK $TENURE_FENCING_TOKEN $TENURE_ATTEMPT" >> "$RUNS"`))
			if i == hosts/2 {
				require.NoError(t, fault.strike(victim))
			}
		}
		for _, s := range all {
			code := s.code(t)
			codes[code]++
			require.Zero(t, code, "tick %d, a node %s: %s", n, fault.name, s.stderr())
		}
		longest = max(longest, time.Since(began))
		require.NoError(t, fault.heal(victim))
	}
	runs := readRuns(t, file)
	require.Len(t, runs, ticks, "one run a tick")
	var last uint64
	for n, r := range runs {
		require.Equal(t, base.Add(time.Duration(n)*time.Second).UnixMilli(), r.tick)
		require.Greater(t, r.token, last)
		require.Equal(t, 1, r.attempt)
		last = r.token
	}
	t.Logf("%d ticks, %d processes: %d runs; exit codes %v; nodes %v; the slowest tick took %v", ticks, ticks*hosts, len(runs), codes, faults, longest.Round(time.Millisecond))
}

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
	fleet, j := valkeytest.Start(t, 3), newJournal(t)
	tick := past(time.Minute)
	holder := start(t, command(fleet, j.worker(rolePlain, "first"), "run", "job", tick, "--", worker(t)))
	j.await(t, "first", "beat", 1)
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
	code, out, stderr := run(t, fleet, nil, "run", "job", past(-time.Hour), "--wait", "1s", "--", "echo", "run")
	require.Equal(t, 69, code)
	require.Empty(t, out)
	require.Contains(t, stderr, "ahead of the server's clock")
}
