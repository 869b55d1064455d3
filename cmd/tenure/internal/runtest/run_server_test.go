package runtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

func TestExitCodes(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	notExecutable := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(notExecutable, []byte("data"), 0o755))
	for _, c := range []struct {
		name string
		code int
		says string
		args []string
	}{
		{"success", 0, "", []string{"run", "a", "--", "true"}},
		{"the command's own", 3, "", []string{"run", "a", "--", "sh", "-c", "exit 3"}},
		{"a command that is killed", 128 + 9, "", []string{"run", "a", "--", "sh", "-c", "kill -9 $$"}},
		{"a command that is terminated", 128 + 15, "", []string{"run", "a", "--", "sh", "-c", "kill -15 $$"}},
		{"no such program", 127, "executable file not found", []string{"run", "a", "--", "no-such-program"}},
		{"no program", 126, "exec format error", []string{"run", "a", "--", notExecutable}},
		{"a directory", 126, "", []string{"run", "a", "--", "/"}},
		{"no command", 64, "a name, and a command", []string{"run", "a"}},
		{"no dashes", 64, "a name, and a command", []string{"run", "a", "true"}},
		{"a grace period", 64, "above half of the TTL", []string{"run", "a", "--grace", "1m", "--", "true"}},
		{"a tick", 64, "neither a schedule", []string{"run", "a", "--tick=often", "--", "true"}},
		{"a zone alone", 64, "a zone and no schedule", []string{"run", "a", "--tick=TZ=0", "--", "true"}},
		{"an interval", 64, "use --once-per", []string{"run", "a", "--tick=@every 1h", "--", "true"}},
		{"a name", 64, "", []string{"run", strings.Repeat("x", 2000), "--", "true"}},
		{"a payload", 64, "WithPayload", []string{"run", "a", "--payload", strings.Repeat("x", 2000), "--", "true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := run(t, fleet, nil, c.args...)
			require.Equal(t, c.code, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.says)
			if c.says == "" && c.code != 126 && c.code != 64 {
				require.Empty(t, stderr)
			}
		})
	}
}

// The lease is another's: --try and --wait end with codes of their own, and -E sets both.
func TestHeld(t *testing.T) {
	fleet, _, holder := holds(t, rolePlain, "run", "a", "--ttl", "60s", "--identity", "night")
	code, _, stderr := run(t, fleet, nil, "run", "a", "--ttl", "60s", "--node-timeout", "15s", "--try", "--", "true")
	require.Equal(t, 75, code)
	require.Contains(t, stderr, `held by another owner: night`)
	require.Contains(t, stderr, "another host has the lease: try again later, or wait for it with --wait")
	code, _, stderr = run(t, fleet, nil, "run", "a", "--wait", "3s", "--", "true")
	require.Equal(t, 124, code, stderr)
	require.Contains(t, stderr, "give it longer with --wait")
	require.NotContains(t, stderr, "--timeout")
	code, _, stderr = run(t, fleet, nil, "run", "a", "--ttl", "60s", "--node-timeout", "15s", "-n", "-E", "42", "--", "true")
	require.Equal(t, 42, code, stderr)

	require.NoError(t, syscall.Kill(holder.Pid(), syscall.SIGTERM))
	require.Equal(t, 7, holder.code(t), "the command's code")
	code, _, stderr = run(t, fleet, nil, "run", "a", "--ttl", "60s", "--node-timeout", "15s", "--try", "--", "true")
	require.Zero(t, code, "the lease was released: %s", stderr)
}

func TestNoQuorum(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	for _, n := range fleet.Nodes()[:2] {
		require.NoError(t, n.Kill())
	}
	code, _, stderr := run(t, fleet, nil, "run", "a", "--ttl", "60s", "--node-timeout", "15s", "--try", "--", "true")
	require.Equal(t, 69, code, stderr)
	require.Contains(t, stderr, "no quorum")
	require.NotContains(t, stderr, fleet.Node(2).Addr(), "which is well")
	code, _, stderr = waits(t, fleet, "--", "true")
	require.Equal(t, 69, code, stderr)
	require.Contains(t, stderr, "no quorum")
}

// The streams are the command's own, and so are further descriptors; the environment has what the
// command may know, and not the nodes.
func TestStreamsAndEnvironment(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	third, err := os.CreateTemp(t.TempDir(), "third")
	require.NoError(t, err)
	cmd := command(fleet, []string{"TENURE_FENCING_TOKEN=99", "TENURE_TICK=99", "MINE=x"}, "run", "a/b", "--", "sh", "-c",
		`cat; echo out; echo err >&2; echo three >&3; env | grep -c '^TENURE_NODES'; env | grep '^TENURE_\|^MINE'; read wall up < $TENURE_DEADLINE_FILE; echo "up $up"; cut -d' ' -f1 /proc/uptime`)
	cmd.Stdin = strings.NewReader("in\x00put\n")
	cmd.ExtraFiles = []*os.File{third}
	s := start(t, cmd)
	require.Zero(t, s.code(t), s.stderr())
	require.Equal(t, "err\n", s.stderr(), "nothing of tenure's own")
	out := s.stdout()
	require.True(t, strings.HasPrefix(out, "in\x00put\nout\n0\n"), out)
	require.Contains(t, out, "TENURE_KEY=a/b\n")
	require.Contains(t, out, "MINE=x\n")
	require.NotContains(t, out, "TENURE_FENCING_TOKEN=99\n")
	require.NotContains(t, out, "TENURE_TICK")
	var deadline, uptime float64
	_, err = fmt.Sscanf(out[strings.Index(out, "up "):], "up %g\n%g\n", &deadline, &uptime)
	require.NoError(t, err)
	require.Greater(t, deadline, uptime)
	require.Less(t, deadline, uptime+10)
	text, err := os.ReadFile(third.Name())
	require.NoError(t, err)
	require.Equal(t, "three\n", string(text))
	file := out[strings.Index(out, "TENURE_DEADLINE_FILE=")+len("TENURE_DEADLINE_FILE="):]
	_, err = os.Stat(filepath.Dir(file[:strings.Index(file, "\n")]))
	require.ErrorIs(t, err, os.ErrNotExist, "it is removed")
}

// A reader that goes away ends the command as it would without tenure, and tenure with it.
func TestBrokenPipe(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	in, out, err := os.Pipe()
	require.NoError(t, err)
	cmd := command(fleet, nil, "run", "a", "--", "yes")
	cmd.Stdout = out
	s := start(t, cmd)
	require.NoError(t, out.Close())
	_, err = io.ReadFull(in, make([]byte, 10))
	require.NoError(t, err)
	require.NoError(t, in.Close())
	require.Equal(t, 128+13, s.code(t), s.stderr())
}

// deafStream is an error stream that nobody reads.
func deafStream(t *testing.T) *os.File {
	t.Helper()
	in, out, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, in.Close())
	t.Cleanup(func() { _ = out.Close() }) // it was only handed on
	return out
}

// An error stream that nobody reads any more ends neither tenure nor the command, and the exit code
// is what it would be.
func TestBrokenErrorStream(t *testing.T) {
	fleet, j := valkeytest.Start(t, 3), newJournal(t)
	cmd := command(fleet, j.worker(rolePlain, "first"), "run", "a", "--ttl", "2s", "--", worker(t))
	cmd.Stderr = deafStream(t)
	s := start(t, cmd)
	j.await(t, "first", "beat", 1)
	stopWatchdog(t, s)
	j.await(t, "first", "beat", len(j.records(t))+10)

	held := command(fleet, nil, "run", "a", "--try", "--", "true")
	held.Stderr = deafStream(t)
	require.Equal(t, 75, start(t, held).code(t))

	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGTERM))
	require.Equal(t, 7, s.code(t), "the command's code")

	elect := command(fleet, nil, "elect", "b", "--once", "--", "sh", "-c", "exit 9") // which says that it was elected
	elect.Stderr = deafStream(t)
	require.Equal(t, 9, start(t, elect).code(t))
}

// stopWatchdog stops the watchdog, until tenure has woken it, which it says, and lives.
func stopWatchdog(t *testing.T, s *started) {
	t.Helper()
	dog := s.watchdog(t)
	require.Eventually(t, func() bool { // it may be woken at once
		require.NoError(t, syscall.Kill(dog, syscall.SIGSTOP))
		f := fields(dog)
		return !s.Running() || len(f) > 0 && f[0] == "T"
	}, patience, poll)
	require.Eventually(t, func() bool { f := fields(dog); return !s.Running() || len(f) > 0 && f[0] != "T" }, patience, poll)
	require.True(t, s.Running(), "a line that nobody reads")
}

// A reader of the error stream that does not read on keeps no command beyond its lease, and none
// from its beginning.
func TestErrorStreamThatIsFull(t *testing.T) {
	fleet, j := valkeytest.Start(t, 3), newJournal(t)
	in, full, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	require.NoError(t, full.SetWriteDeadline(time.Now().Add(time.Second)))
	wrote, _ := full.Write(make([]byte, 2<<20)) // what there is room for
	require.NotZero(t, wrote)
	cmd := command(fleet, j.worker(roleDeaf, "first", beatsVariable+"=5000"), "run", "a", "--ttl", "2s", "--", worker(t))
	cmd.Stderr = full
	s := start(t, cmd)
	j.await(t, "first", "beat", 1)
	stopWatchdog(t, s)
	require.NoError(t, s.Kill())
	require.Eventually(t, func() bool { return len(j.survivors(t)) == 0 }, patience, poll)
	j.check(t)

	elect := command(fleet, nil, "elect", "b", "--once", "--", "sh", "-c", "exit 9") // which says that it was elected
	elect.Stderr = full
	require.Equal(t, 9, start(t, elect).code(t))
}

// Signals reach the command, and do not end tenure before it.
func TestSignalsAreForwarded(t *testing.T) {
	_, j, s := holds(t, roleTells, "run", "a", "--ttl", "60s")
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		require.NoError(t, syscall.Kill(s.Pid(), sig))
		j.await(t, "first", fmt.Sprintf("signal-%d", int(sig)), 1)
	}
	require.True(t, s.Running())
	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGTERM))
	require.Zero(t, s.code(t), "the command's code: %s", s.stderr())
}

// A command that is stopped is woken to hear that it is to end.
func TestSignalForTheStopped(t *testing.T) {
	_, j, s := holds(t, rolePlain, "run", "a")
	pid := j.records(t)[0].pid
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.Eventually(t, func() bool { f := fields(pid); return len(f) > 0 && f[0] == "T" }, patience, poll)
	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGTERM))
	require.Equal(t, 7, s.code(t))
}

// A signal ends the wait for a lease, and nothing is left of it.
func TestSignalWhileWaiting(t *testing.T) {
	fleet, _, holder := holds(t, rolePlain, "run", "a", "--ttl", "60s")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		s := start(t, command(fleet, nil, "run", "a", "--", "true"))
		require.Eventually(t, func() bool { return caught(s.Pid(), sig) }, patience, poll)
		require.NoError(t, syscall.Kill(s.Pid(), sig))
		require.Equal(t, 128+int(sig), s.code(t), s.stderr())
	}
	require.True(t, holder.Running())
}

// caught reports whether a process catches a signal (SigCgt of proc_pid_status(5)) and has
// connections, which it makes after it began to.
func caught(pid int, sig syscall.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, mask, _ := bytes.Cut(status, []byte("SigCgt:\t"))
	var bits uint64
	_, _ = fmt.Sscanf(string(mask), "%x", &bits)
	sockets := 0
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, name := range names {
		if to, _ := os.Readlink(name); strings.HasPrefix(to, "socket:") {
			sockets++
		}
	}
	return bits&(1<<(uint(sig)-1)) != 0 && sockets >= 3
}

// SIGHUP and SIGINT that were ignored when tenure began are ignored: nohup. Others are passed on,
// and the command begins with their default: Go's runtime has them caught before main.
func TestNohup(t *testing.T) {
	fleet, j := valkeytest.Start(t, 3), newJournal(t)
	cmd := command(fleet, j.worker(roleQuiet, "first", beatsVariable+"=100"), "run", "a", "--", worker(t))
	cmd.Args = append([]string{"sh", "-c", `trap "" HUP INT; exec "$0" "$@"`}, append([]string{tenure}, cmd.Args[1:]...)...)
	cmd.Path = "/bin/sh"
	s := start(t, cmd)
	j.await(t, "first", "beat", 1)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		require.NoError(t, syscall.Kill(s.Pid(), sig))
		require.NoError(t, syscall.Kill(j.records(t)[0].pid, sig))
	}
	require.Zero(t, s.code(t), s.stderr())

	cmd = command(fleet, j.worker(roleQuiet, "second"), "run", "a", "--", worker(t))
	cmd.Args = append([]string{"sh", "-c", `trap "" TERM; exec "$0" "$@"`}, append([]string{tenure}, cmd.Args[1:]...)...)
	cmd.Path = "/bin/sh"
	s = start(t, cmd)
	j.await(t, "second", "beat", 1)
	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGTERM))
	require.Equal(t, 128+int(syscall.SIGTERM), s.code(t), s.stderr())
}

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

// elect ends after a signal also when the watchdog is killed before the command has ended.
func TestElectEndsWithoutItsWatchdog(t *testing.T) {
	fleet := valkeytest.Start(t, 3)
	file := t.TempDir() + "/told"
	s := start(t, command(fleet, []string{"TOLD=" + file}, "elect", "api", "--", "sh", "-c", `trap 'echo told >> "$TOLD"' TERM; echo begun >> "$TOLD"; while :; do sleep 0.1; done`))
	has := func(word string) func() bool {
		return func() bool { text, _ := os.ReadFile(file); return strings.Contains(string(text), word) }
	}
	require.Eventually(t, has("begun"), patience, poll)
	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGTERM))
	require.Eventually(t, has("told"), patience, poll)
	require.NoError(t, syscall.Kill(s.watchdog(t), syscall.SIGKILL))
	require.Equal(t, 71, s.code(t), s.stderr())
	require.Contains(t, s.stderr(), "the watchdog has ended")
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

// settings are those that the units may have, by section: a misspelled one is ignored by systemd.
var settings = map[string][]string{
	"Unit": {"Description", "Documentation", "Wants", "After"},
	"Service": {"Type", "EnvironmentFile", "ExecStart", "Restart", "RestartSec", "KillMode", "TimeoutStopSec",
		"SuccessExitStatus", "LimitRTPRIO", "DynamicUser"},
	"Timer":   {"OnCalendar", "RandomizedDelaySec", "AccuracySec"},
	"Install": {"WantedBy"},
}

// unit is a file of deploy/systemd: values by section and name.
func unit(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	values, section := map[string]string{}, ""
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSuffix(l, "\n")
		switch {
		case l == "" || l[0] == '#':
		case l[0] == '[':
			section = strings.Trim(l, "[]")
			require.Contains(t, settings, section)
		default:
			name, value, ok := strings.Cut(l, "=")
			require.True(t, ok && value != "", l)
			require.Contains(t, settings[section], name)
			require.NotContains(t, values, section+"."+name)
			values[section+"."+name] = value
		}
	}
	return values
}

// The units are read strictly, by systemd itself where it is there, and their command lines are
// run.
func TestUnits(t *testing.T) {
	files, err := filepath.Glob("../../../../deploy/systemd/*.*")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool { return filepath.Ext(f) == ".md" })
	require.Len(t, files, 3)
	fleet, dir := valkeytest.Start(t, 3), t.TempDir()
	for _, file := range files {
		values := unit(t, file)
		line, isService := values["Service.ExecStart"]
		require.Equal(t, filepath.Ext(file) == ".service", isService)
		if isService {
			require.Equal(t, "mixed", values["Service.KillMode"], "tenure passes SIGTERM on")
			args := strings.Fields(strings.NewReplacer("%i", "unit", "%H", "host").Replace(line))
			require.Equal(t, "/usr/local/bin/tenure", args[0])
			require.Equal(t, "/usr/local/libexec/tenure/unit", args[len(args)-1])
			args[len(args)-1] = "true"
			if args[1] == "elect" {
				args = slices.Insert(args, 2, "--once") // else it would not end
			}
			code, _, stderr := run(t, fleet, nil, args[1:]...)
			require.Zero(t, code, stderr)
			if args[1] == "run" { // whatever it does, it does not while it is paused
				_, _, _ = run(t, fleet, nil, "pause", "other", "--force", "--why", "test")
				args[2], args[len(args)-1] = strings.Replace(args[2], "unit", "other", 1), "false"
				code, _, stderr = run(t, fleet, nil, args[1:]...)
				require.Zero(t, code, stderr)
			}
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		copied := filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(copied, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/tenure", tenure)), 0o644))
	}
	systemd, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return // the strict reading above has to do
	}
	for _, file := range files {
		cmd := exec.Command(systemd, "verify", "--man=no", "./"+filepath.Base(file))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Empty(t, string(out))
	}
}
