package runtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// patience is for waits that end with an event, on a machine that does other things too.
const patience = 60 * time.Second

// poll is how often something is looked at: a look at all processes takes the machine some
// milliseconds.
const poll = 20 * time.Millisecond

// started is a tenure process.
type started struct {
	*child.Child
	cmd *exec.Cmd

	mu  sync.Mutex
	out bytes.Buffer // guarded by mu
	err bytes.Buffer // guarded by mu
}

type locked struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// command makes one that has the nodes in its environment.
func command(fleet *valkeytest.Fleet, environ []string, args ...string) *exec.Cmd {
	cmd := exec.Command(tenure, args...)
	cmd.Env = append(os.Environ(), "TENURE_NODES="+strings.Join(fleet.URLs(), ","), "TENURE_WITHOUT_RESTART_GATE=true")
	cmd.Env = append(cmd.Env, environ...)
	return cmd
}

// start starts tenure, and ends it with the test.
func start(t *testing.T, cmd *exec.Cmd) *started {
	t.Helper()
	s := &started{cmd: cmd}
	if cmd.Stdout == nil {
		cmd.Stdout = locked{&s.mu, &s.out}
	}
	if cmd.Stderr == nil {
		cmd.Stderr = locked{&s.mu, &s.err}
	}
	// A worker that is stopped or left behind may keep the pipes open.
	cmd.WaitDelay = 5 * time.Second
	c, err := child.Start(cmd)
	require.NoError(t, err)
	s.Child = c
	t.Cleanup(func() { _ = c.Kill() })
	return s
}

func (s *started) stdout() string { s.mu.Lock(); defer s.mu.Unlock(); return s.out.String() }
func (s *started) stderr() string { s.mu.Lock(); defer s.mu.Unlock(); return s.err.String() }

// code waits for the end and returns the exit code.
func (s *started) code(t *testing.T) int {
	t.Helper()
	select {
	case <-s.Exited():
	case <-time.After(patience):
		t.Fatalf("tenure has not ended; it has said: %s", s.stderr())
	}
	return s.cmd.ProcessState.ExitCode()
}

// run starts tenure and waits for its end.
func run(t *testing.T, fleet *valkeytest.Fleet, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	s := start(t, command(fleet, environ, args...))
	code = s.code(t)
	return code, s.stdout(), s.stderr()
}

// holds starts servers, and a tenure whose command has begun.
func holds(t *testing.T, role string, args ...string) (*valkeytest.Fleet, *journal, *started) {
	t.Helper()
	fleet, j := valkeytest.Start(t, 3), newJournal(t)
	s := start(t, command(fleet, j.worker(role, "first"), append(args, "--", worker(t))...))
	j.await(t, "first", "beat", 1)
	return fleet, j, s
}

// waits runs a tenure that waits for a lease in vain, and may say why. On a slow machine the time
// passes before it knows that: then another one waits longer.
func waits(t *testing.T, fleet *valkeytest.Fleet, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	for wait := time.Second; ; wait *= 3 {
		code, stdout, stderr = run(t, fleet, nil, slices.Concat([]string{"run", "job", "--wait", wait.String()}, args)...)
		if code != 124 || wait > patience {
			return code, stdout, stderr
		}
	}
}

// watchdog is the pid of a tenure's watchdog, once that is there.
func (s *started) watchdog(t *testing.T) int {
	t.Helper()
	var found int
	require.Eventually(t, func() bool {
		for _, pid := range childrenOf(s.Pid()) {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if bytes.HasPrefix(text, []byte("tenure-watchdog\x00")) {
				found = pid
			}
		}
		return found != 0
	}, patience, poll)
	return found
}

// fields are those of /proc/pid/stat behind the name: state, parent, group, ...
func fields(pid int) []string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

func childrenOf(parent int) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		var pid int
		_, _ = fmt.Sscanf(name, "/proc/%d", &pid)
		if f := fields(pid); len(f) > 2 && f[1] == fmt.Sprint(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// lives reports whether a process runs, or could: one that nobody has reaped does not.
func lives(pid int) bool {
	f := fields(pid)
	return len(f) > 0 && f[0] != "Z" && f[0] != "X"
}

// record is a line of the workers' log.
type record struct {
	at       time.Duration
	name     string
	pid      int
	token    uint64
	deadline time.Duration // that the worker knew
	kind     string
}

// journal is the log of the workers of a lease.
type journal struct{ file string }

func newJournal(t *testing.T) *journal {
	return &journal{filepath.Join(t.TempDir(), "journal")}
}

// worker is what is added to the environment for a worker with a name.
func (j *journal) worker(role, name string, more ...string) []string {
	return append([]string{roleVariable + "=" + role, logVariable + "=" + j.file, nameVariable + "=" + name}, more...)
}

func (j *journal) records(t *testing.T) (all []record) {
	t.Helper()
	text, err := os.ReadFile(j.file)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for l := range strings.Lines(string(text)) {
		if !strings.HasSuffix(l, "\n") {
			continue // is being written
		}
		var r record
		_, err := fmt.Sscan(l, (*int64)(&r.at), &r.name, &r.pid, &r.token, (*int64)(&r.deadline), &r.kind)
		require.NoError(t, err, l)
		all = append(all, r)
	}
	return all
}

// await waits until a worker whose name begins so has written a line of a kind so often.
func (j *journal) await(t *testing.T, name, kind string, times int) {
	t.Helper()
	require.Eventually(t, func() bool {
		n := 0
		for _, r := range j.records(t) {
			if strings.HasPrefix(r.name, name) && strings.HasPrefix(r.kind, kind) {
				n++
			}
		}
		return n >= times
	}, patience, poll, "%s %s", name, kind)
}

// check asserts that no worker lived at the deadline that it knew, and that workers with different
// tokens did not live at the same time. It returns the smallest of the times by which they kept
// clear of the deadline.
func (j *journal) check(t *testing.T) (margin time.Duration) {
	t.Helper()
	type life struct{ first, last time.Duration }
	lives := map[uint64]*life{}
	margin = time.Hour
	for _, r := range j.records(t) {
		require.NotZero(t, r.token)
		require.NotZero(t, r.deadline, "the worker knows its deadline")
		require.Less(t, r.at, r.deadline, "%+v lives beyond the deadline", r)
		margin = min(margin, r.deadline-r.at)
		l := lives[r.token]
		if l == nil {
			l = &life{r.at, r.at}
			lives[r.token] = l
		}
		l.first, l.last = min(l.first, r.at), max(l.last, r.at)
	}
	for a, x := range lives {
		for b, y := range lives {
			if a < b {
				require.Less(t, x.last, y.first, "a worker with token %d lives when one with %d has begun", a, b)
			}
		}
	}
	return margin
}

// survivors are workers that live.
func (j *journal) survivors(t *testing.T) (pids []int) {
	t.Helper()
	seen := map[int]bool{}
	for _, r := range j.records(t) {
		if !seen[r.pid] && lives(r.pid) {
			pids = append(pids, r.pid)
		}
		seen[r.pid] = true
	}
	return pids
}

// worker is the command line of one.
func worker(t *testing.T) string {
	t.Helper()
	file, err := os.Executable()
	require.NoError(t, err)
	return file
}

// The variables of a worker.
const (
	roleVariable  = "RUNTEST_ROLE" // how it behaves, see roles
	logVariable   = "RUNTEST_LOG"  // the file that it writes to
	nameVariable  = "RUNTEST_NAME"
	beatsVariable = "RUNTEST_BEATS" // after how many beats it ends by itself; empty for never
	codeVariable  = "RUNTEST_CODE"  // its exit code then
)

// The roles. All beat; those that start another one beat too.
const (
	rolePlain   = "plain"   // ends with exit code 7 on SIGTERM
	roleDeaf    = "deaf"    // ignores all signals that can be ignored
	roleStops   = "stops"   // stops itself with SIGSTOP, deaf else
	roleForks   = "forks"   // starts a deaf one in its group
	roleSession = "session" // starts a deaf one in a session of its own
	roleDaemon  = "daemon"  // starts a deaf one by a double fork, in a session of its own
	roleLeaves  = "leaves"  // starts a deaf daemon and ends with 0
	roleStorm   = "storm"   // starts deaf ones without end, in sessions of their own
	roleMiddle  = "middle"  // of the double fork
	roleQuiet   = "quiet"   // leaves its signals as they are
	roleTells   = "tells"   // writes down each signal, and ends on SIGTERM with 0
)

const beatEvery = 4 * time.Millisecond

// boottime is the time by the clock that all processes of the machine share.
func boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// log appends a line: when, which worker, its token, and what.
func log(kind string) {
	f, err := os.OpenFile(os.Getenv(logVariable), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		os.Exit(99)
	}
	defer f.Close()
	token := os.Getenv("TENURE_FENCING_TOKEN")
	if token == "" {
		token = "0"
	}
	fmt.Fprintf(f, "%d %s %d %s %d %s\n", boottime(), os.Getenv(nameVariable), os.Getpid(), token, knownDeadline(), kind)
}

var lastDeadline time.Duration

// knownDeadline is what the file says, by boottime.
func knownDeadline() time.Duration {
	text, err := os.ReadFile(os.Getenv("TENURE_DEADLINE_FILE"))
	var wall, up float64
	if _, scanned := fmt.Sscan(string(text), &wall, &up); err == nil && scanned == nil {
		lastDeadline = time.Duration(up * float64(time.Second))
	}
	return lastDeadline
}

// another starts a further worker, and returns it.
func another(role string, attr *syscall.SysProcAttr) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleVariable+"="+role, nameVariable+"="+os.Getenv(nameVariable)+"."+role)
	cmd.SysProcAttr = attr
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		log("error " + strings.ReplaceAll(err.Error(), " ", "_"))
	}
	return cmd
}

// work is the main function of a worker, and does not return.
func work(role string) {
	told := make(chan os.Signal, 16)
	session := &syscall.SysProcAttr{Setsid: true}
	switch role {
	case roleMiddle:
		another(roleDeaf, session)
		os.Exit(0)
	case roleQuiet: // leaves signals as they were
	case rolePlain, roleLeaves:
		signal.Notify(told, syscall.SIGTERM)
	case roleTells:
		signal.Notify(told, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	default:
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	}
	log("begin")
	switch role {
	case roleForks:
		another(roleDeaf, nil)
	case roleSession:
		another(roleDeaf, session)
	case roleDaemon, roleLeaves:
		_ = another(roleMiddle, session).Wait()
	}
	most := -1
	_, _ = fmt.Sscan(os.Getenv(beatsVariable), &most)
	beat := time.NewTicker(beatEvery)
	for n := 0; ; n++ {
		select {
		case s := <-told:
			number, _ := s.(syscall.Signal)
			log(fmt.Sprintf("signal-%d", int(number)))
			if number == syscall.SIGTERM {
				code := 7
				if role == roleTells {
					code = 0
				}
				os.Exit(code)
			}
		case <-beat.C:
			log("beat")
		}
		switch {
		case role == roleStops && n == 20:
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		case role == roleLeaves && n == 20:
			os.Exit(0)
		case role == roleStorm && n < 400:
			another(roleDeaf, session)
		case n == most:
			code := 0
			_, _ = fmt.Sscan(os.Getenv(codeVariable), &code)
			log("end")
			os.Exit(code)
		}
	}
}
