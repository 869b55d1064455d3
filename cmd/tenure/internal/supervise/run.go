//go:build linux

package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run is one run of a command, as tenure sees it. It belongs to the goroutine of Run.
type run struct {
	Command
	deadline *deadline
	last     instant
	line     *os.File // socket to the watchdog: orders there, events back
	events   <-chan event
	watchdog *exec.Cmd
	exited   <-chan error // the watchdog's exit
	family   *family
	terminal *terminal

	command int    // pid of the command; 0 before it has started
	end     *event // how the command ended, or why it did not start; nil before
	thawed  bool
	gone    bool // the directory of the deadline file was missing once
	late    bool // the deadline file could not be written, and this was said
}

// Run runs the command. It returns when the command and all processes that it has started have
// ended. When ctx ends, the command is told to end. The caller releases the lease after Run has
// returned.
//
// Errors: ErrTooLate; *exec.Error, with Code 126 or 127 in the Result, if the program does not
// start; other errors if the watchdog does not start or is killed. If the watchdog is killed,
// Result.Reason is ReasonWatchdog.
func (c Command) Run(ctx context.Context) (Result, error) {
	r := &run{Command: c}
	defer r.close()
	if err := r.start(); err != nil {
		return Result{}, err
	}
	return r.watch(ctx)
}

func (r *run) start() (err error) {
	_ = adoptOrphans() // Missing reports an error
	// This process may have children of the program that it was before, such as a shell that ran
	// exec.
	before := map[int]uint64{}
	for _, p := range (&family{root: os.Getpid()}).members() {
		before[p.pid] = p.began
	}
	if r.deadline, err = newDeadline(); err != nil {
		return err
	}
	r.publish()
	r.terminal = newTerminal(r.Stdin)
	if err := r.startWatchdog(); err != nil {
		return err
	}
	r.family = &family{root: os.Getpid(), excluded: before, spared: r.watchdog.Process.Pid}
	return nil
}

// startWatchdog starts this program again as the watchdog, with the command's streams and
// environment. The watchdog inherits every descriptor that tenure was given and hands them on to
// the command, which it starts. Its end of the socket and the shared memory keep the numbers that
// they have here, so they do not take the number of a descriptor that tenure's caller has handed
// on.
func (r *run) startWatchdog() error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("supervise: cannot make a socket: %w", err)
	}
	defer func() { _ = unix.Close(ends[1]) }()
	unix.CloseOnExec(ends[0])
	r.line = os.NewFile(uintptr(ends[0]), "watchdog")
	cmd := &exec.Cmd{
		Path: self, Env: r.Env, Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr,
		// A group of its own keeps a terminal's stops and interrupts from the watchdog. When the
		// thread that started a stopped watchdog ends, the kernel wakes the watchdog.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT},
	}
	settings := fmt.Sprint(ends[1], r.deadline.fd, int64(r.Grace), int64(Margin(r.TTL)), r.terminal != nil)
	cmd.Args = append([]string{watchdogName, settings, r.DeadlineFile, r.Path}, r.Args...)
	started, exited := make(chan error), make(chan error, 1)
	go func() {
		// The kernel takes the end of this thread for the end of tenure, and signals the watchdog.
		// So the thread stays reserved for as long as the watchdog lives, and is not used again.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("supervise: cannot start the watchdog: %w", err)
	}
	r.watchdog, r.exited, r.events = cmd, exited, receive(r.line)
	return nil
}

// lookEvery returns the interval at which tenure looks at the deadline and the watchdog. It is at
// most half of the margin.
func lookEvery(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 20*time.Millisecond), time.Second)
}

// watch is the loop of a run. It returns when the watchdog has ended.
func (r *run) watch(ctx context.Context) (Result, error) {
	look := time.NewTicker(lookEvery(r.TTL))
	defer look.Stop()
	done := ctx.Done()
	for {
		select {
		case e, ok := <-r.events:
			if !ok { // the watchdog is about to exit, or was killed
				return r.conclude(<-r.exited)
			}
			r.note(e)
		case s := <-r.Signals:
			if s == syscall.SIGCONT && r.terminal != nil && r.command != 0 {
				r.terminal.give(r.command)
			}
			r.order(byte(s))
		case <-done:
			done = nil
			r.order(orderTell)
		case <-look.C:
			r.publish()
			r.thaw()
			if r.end == nil && now() >= r.last.add(-Margin(r.TTL)*3/4) { // the watchdog is late
				look.Reset(4 * settle)
				_, _ = r.family.signal(syscall.SIGKILL, nil)
				_ = r.watchdog.Process.Signal(syscall.SIGCONT) // so that it reaps and reports
			}
		}
	}
}

// publish passes the current deadline to the watchdog and the command. That of a lease that has
// ended has passed, and is not passed on: the command is told to end, and has until the last one.
func (r *run) publish() {
	at := instantOf(r.Deadline)
	if r.last != 0 && (at <= now() || at.sub(r.last).Abs() < time.Millisecond) {
		return
	}
	r.last = at
	r.deadline.store(at)
	if r.DeadlineFile == "" {
		return
	}
	err := writeDeadline(r.DeadlineFile, at)
	switch {
	case err == nil || r.late:
	case errors.Is(err, os.ErrNotExist) && !r.gone:
		r.gone = true // the watchdog removes the directory when the command has ended; a second time is an error
	default:
		r.late = true
		r.Say(fmt.Sprintf("the command's file with the deadline cannot be written: %v", err))
	}
}

// order sends an order. If the watchdog is frozen and does not read it within the margin, the order
// is lost.
func (r *run) order(o byte) {
	_ = r.line.SetWriteDeadline(time.Now().Add(Margin(r.TTL)))
	_, _ = r.line.Write([]byte{o})
}

func (r *run) note(e event) {
	switch {
	case e.Started != 0:
		r.command = e.Started
	case !e.Stopped:
		r.end = &e
	case r.terminal != nil:
		r.terminal.take()
		r.Say(fmt.Sprintf("the command was stopped, and keeps its lease: kill -CONT %d continues it, an interrupt ends it", os.Getpid()))
	}
}

// thaw continues the watchdog if it was stopped.
func (r *run) thaw() {
	if p, ok := readProcess(r.watchdog.Process.Pid); !ok || p.state != 'T' {
		return
	}
	if !r.thawed {
		r.thawed = true
		r.Say("the watchdog was stopped, and is continued")
	}
	_ = r.watchdog.Process.Signal(syscall.SIGCONT)
}

// conclude returns the result of the run. It is called when the watchdog has ended. If the watchdog
// sent no result, conclude kills the processes that the command has started.
func (r *run) conclude(exit error) (Result, error) {
	switch {
	case r.end == nil: // the kernel has killed the command
	case r.end.Late:
		return Result{}, ErrTooLate
	case r.end.Failed != "":
		return *r.end.Result, &exec.Error{Name: r.Path, Err: errors.New(r.end.Failed)}
	default:
		return *r.end.Result, nil
	}
	// Processes that the command has started are now children of this process.
	left := 0
	for n, refused := r.family.signal(syscall.SIGKILL, nil); n > 0; n, refused = r.family.signal(syscall.SIGKILL, nil) {
		left = max(left, n)
		if len(refused) > 0 {
			return Result{Reason: ReasonWatchdog, Killed: true, Left: left}, fmt.Errorf("supervise: the watchdog has ended (%v), and of the "+
				"command's processes %v are another user's and may not be killed", exit, refused)
		}
		time.Sleep(settle)
	}
	reapOrphans()
	return Result{Reason: ReasonWatchdog, Killed: true, Left: left}, fmt.Errorf("supervise: the watchdog has ended (%v), so the command was killed", exit)
}

// reapOrphans reaps the orphans that the watchdog has left, so that their pids become free.
func reapOrphans() {
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
			return
		}
	}
}

func (r *run) close() {
	if r.terminal != nil {
		r.terminal.take()
	}
	_ = r.line.Close() // also if it is nil
	if r.deadline != nil {
		r.deadline.close()
	}
	r.discard()
}
