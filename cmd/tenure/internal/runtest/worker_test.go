package runtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

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
