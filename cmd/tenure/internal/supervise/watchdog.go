//go:build linux

package supervise

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchdogName is the watchdog's first argument. The arguments after it are the settings, the
// deadline file, and the path and arguments of the command.
const watchdogName = "tenure-watchdog"

// IsWatchdog reports whether this process was started as a watchdog. main must then do nothing but
// call Watch.
func IsWatchdog() bool { return len(os.Args) > 0 && os.Args[0] == watchdogName }

// watchdog is the process between tenure and the command. One thread does all its work, and the
// kernel runs that thread before others if it may. So an action that is due waits for nothing else.
type watchdog struct {
	// The command to start. Its environment is the watchdog's own.
	grace, margin time.Duration
	foreground    bool   // the command gets the terminal of standard input
	deadlineFile  string // its directory is removed at the end; empty for no file
	path          string
	args          []string

	line     *os.File     // to tenure
	encoder  *gob.Encoder // writes events to line
	orders   int          // descriptor of line, for orders; -1 once tenure is dead
	deadline *deadline
	timer    timer
	children int // descriptor that can be read after a SIGCHLD

	family  *family
	command int                // pid and process group of the command
	ended   bool               // the command was reaped
	status  syscall.WaitStatus // how the command ended
	told    instant            // when the processes were told to end; 0 before
	reason  Reason
	killed  bool
	left    int
	refused map[int]bool  // pids that may not be signalled, which was said
	pause   time.Duration // pause before the next kill
}

// Watch is the main function of a watchdog. It returns the exit code.
func Watch() int {
	w, err := newWatchdog(os.Args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tenure: watchdog:", err)
		return 1
	}
	w.watch()
	return 0
}

func newWatchdog(args []string) (*watchdog, error) {
	w := &watchdog{family: &family{root: os.Getpid()}, refused: map[int]bool{}, pause: settle}
	var memory int
	if len(args) < 5 {
		return nil, errors.New("this is for tenure to start, and nobody else")
	}
	if _, err := fmt.Sscan(args[1], &w.orders, &memory, &w.grace, &w.margin, &w.foreground); err != nil {
		return nil, err
	}
	w.deadlineFile, w.path, w.args = args[2], args[3], args[4:]
	unix.CloseOnExec(w.orders)
	unix.CloseOnExec(memory)
	w.line = os.NewFile(uintptr(w.orders), "tenure")
	w.encoder = gob.NewEncoder(w.line)
	// The kernel kills the command when the thread that started the command ends.
	runtime.LockOSThread()
	// A signal that is sent to tenure and the watchdog alike is tenure's to forward, so the
	// watchdog catches it and does nothing. If the watchdog ignored the signal, the command would
	// ignore it too.
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		if !signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	_ = adoptOrphans() // Missing reports an error
	hurry()
	debug.SetGCPercent(-1) // no action waits for a garbage collection
	debug.SetMemoryLimit(64 << 20)
	var err error
	if w.deadline, err = mapDeadline(memory); err != nil {
		return nil, err
	}
	if w.timer, err = newTimer(); err != nil {
		return nil, err
	}
	w.children, err = childSignals()
	return w, err
}

// childSignals returns a descriptor that can be read after a SIGCHLD.
func childSignals() (in int, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return 0, fmt.Errorf("cannot make a pipe: %w", err)
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGCHLD)
	go func() {
		for range caught {
			_, _ = unix.Write(pipe[1], []byte{0}) // a full pipe can be read already
		}
	}()
	return pipe[0], nil
}

// report sends an event to tenure. It is lost if tenure is dead, or frozen for long.
func (w *watchdog) report(e event) {
	_ = w.line.SetWriteDeadline(time.Now().Add(time.Second)) // tenure may be frozen
	_ = w.encoder.Encode(e)
}

func (w *watchdog) watch() {
	defer Command{DeadlineFile: w.deadlineFile}.discard() // tenure may be dead and unable to do it
	if !w.begin() {
		return
	}
	for {
		w.reap()
		next := w.act(now())
		if next == 0 {
			break
		}
		w.timer.wait(next, w.children, w.orders)
		_, _ = read(w.children)
		w.listen()
	}
	w.report(event{Result: &Result{Code: code(w.status), Reason: w.reason, Killed: w.killed, Left: w.left}})
}

// listen carries out the orders that tenure has sent so far.
func (w *watchdog) listen() {
	p, ended := read(w.orders)
	for _, o := range p {
		w.obey(o)
	}
	if ended {
		w.orders = -1 // it is neither read nor waited for any more
		w.tell(ReasonOrphaned)
	}
}

// read reads the available bytes without waiting. It reports whether the other end is closed.
func read(fd int) (p []byte, ended bool) {
	buffer := make([]byte, 256)
	n, err := unix.Read(fd, buffer)
	return buffer[:max(n, 0)], n == 0 && err == nil
}

// begin starts the command. It reports whether the command was started.
func (w *watchdog) begin() bool {
	if now() >= w.deadline.load().add(-w.grace) {
		w.report(event{Late: true})
		return false
	}
	// The command gets the foreground of standard input. It is killed when this thread ends.
	attr := &syscall.SysProcAttr{Setpgid: true, Foreground: w.foreground, Pdeathsig: syscall.SIGKILL}
	pid, err := syscall.ForkExec(w.path, w.args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: attr})
	if err != nil {
		result := &Result{Code: 126}
		if errors.Is(err, os.ErrNotExist) {
			result.Code = 127
		}
		w.report(event{Failed: err.Error(), Result: result})
		return false
	}
	w.command = pid
	w.report(event{Started: pid})
	return true
}

// reap reaps the command and orphans, and notes how the command ended.
func (w *watchdog) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || pid <= 0:
			return
		case pid != w.command:
		case status.Stopped():
			w.report(event{Stopped: true})
		default:
			w.ended, w.status = true, status
		}
	}
}

func (w *watchdog) obey(o byte) {
	if o == orderTell {
		w.tell(ReasonContext)
	} else if !w.ended { // until the command is reaped, the group's number is its own
		s := syscall.Signal(o)
		_ = syscall.Kill(-w.command, s)
		// A stopped process does not see that it is to end.
		if s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGHUP || s == syscall.SIGQUIT {
			_ = syscall.Kill(-w.command, syscall.SIGCONT)
		}
	}
}

// act does everything that is due. It returns the latest instant at which it must be called again,
// or 0 if all processes have ended.
func (w *watchdog) act(at instant) instant {
	last := w.deadline.load()
	tellAt, killAt := last.add(-max(w.grace, w.margin)), last.add(-w.margin)
	if w.ended {
		members := w.family.members()
		if len(members) == 0 {
			return 0
		}
		w.left = max(w.left, len(members))
		w.tell("")
	}
	if at >= tellAt {
		w.tell(ReasonDeadline)
	}
	if w.told != 0 {
		killAt = min(killAt, w.told.add(w.grace))
	}
	switch {
	case at >= killAt:
		w.kill()
		w.pause = min(2*w.pause, 40*settle) // a process inside the kernel takes time to die
		return at.add(w.pause)
	case w.ended:
		return min(killAt, at.add(4*settle)) // a child of another process ends without a signal to this one
	case w.told != 0:
		return killAt
	default:
		return tellAt
	}
}

// tell asks all processes to end. It does so once.
func (w *watchdog) tell(r Reason) {
	if w.told != 0 {
		return
	}
	w.told = now()
	if !w.ended {
		w.reason = r
		_ = syscall.Kill(-w.command, syscall.SIGTERM)
		_ = syscall.Kill(-w.command, syscall.SIGCONT)
		if r == ReasonOrphaned {
			fmt.Fprintf(Aside{os.Stderr}, "tenure: tenure has died, and its lease runs out: the command is told to end, and killed in %v at the latest\n", w.grace)
		}
	}
	w.family.signal(syscall.SIGTERM, w.stray)
	w.family.signal(syscall.SIGCONT, w.stray)
}

// stray reports whether a signal to the command's group does not reach the process.
func (w *watchdog) stray(p process) bool { return w.ended || p.group != w.command }

// kill sends SIGKILL to all processes. It says once of each process that it may not kill it.
func (w *watchdog) kill() {
	w.killed = true
	if !w.ended {
		_ = syscall.Kill(-w.command, syscall.SIGKILL)
	}
	_, refused := w.family.signal(syscall.SIGKILL, nil)
	for _, pid := range refused {
		if !w.refused[pid] {
			w.refused[pid] = true
			fmt.Fprintf(Aside{os.Stderr}, "tenure: process %d is another user's and may not be killed: it may outlive the lease\n", pid)
		}
	}
}

// code returns the exit code as in a shell.
func code(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
