//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchdogName is the watchdog's first argument. The others are the descriptors of orders, events
// and the deadline.
const watchdogName = "tenure-watchdog"

// IsWatchdog reports whether this process was started as a watchdog, so that main is to do nothing
// but Watch.
func IsWatchdog() bool { return len(os.Args) > 0 && os.Args[0] == watchdogName }

// watchdog is the process between tenure and the command. All is done by one thread, which the
// kernel runs before others if it may: what is due at an instant waits for nothing else.
type watchdog struct {
	events   *os.File
	orders   *os.File // nil once tenure is dead
	box      mailbox[order]
	deadline *deadline
	waiter   *waiter
	children *os.File // can be read after SIGCHLD

	start   *start
	parted  bool // tenure has heard of the end
	family  *family
	command int                // its pid, and the number of its group
	ended   bool               // it was reaped
	status  syscall.WaitStatus // how it ended
	told    instant            // when all were told to end; 0 before
	reason  Reason
	killed  bool
	left    int
	refused map[int]bool  // may not be signalled, and this was said
	pause   time.Duration // until the next kill
}

// Watch is the main function of a watchdog, and returns its exit code.
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
	if len(args) != 4 {
		return nil, errors.New("this is for tenure to start, and nobody else")
	}
	var files [3]*os.File
	for i, text := range args[1:] {
		fd, err := strconv.Atoi(text)
		if err != nil || fd < 3 {
			return nil, fmt.Errorf("%q is no descriptor", text)
		}
		unix.CloseOnExec(fd)
		files[i] = os.NewFile(uintptr(fd), "tenure")
	}
	// The kernel kills the command when the thread ends that started it.
	runtime.LockOSThread()
	// tenure is told what is sent to both. A signal that is caught is not ignored by the command.
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU} {
		if !signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	d, err := mapDeadline(files[2])
	if err != nil {
		return nil, err
	}
	_ = adoptOrphans() // Missing has said if it cannot be done
	hurry()
	debug.SetGCPercent(-1) // nothing of this process waits for a collection
	debug.SetMemoryLimit(64 << 20)
	waiter, err := newWaiter()
	if err != nil {
		return nil, err
	}
	children, err := childSignals()
	if err != nil {
		return nil, err
	}
	return &watchdog{
		orders: files[0], events: files[1], deadline: d, waiter: waiter, children: children,
		family: &family{root: os.Getpid()}, refused: map[int]bool{}, pause: settle,
	}, nil
}

// childSignals can be read after a SIGCHLD.
func childSignals() (*os.File, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGCHLD)
	go func() {
		for range caught {
			write(out, 0)
		}
	}()
	return in, nil
}

// say is for people, when tenure cannot say it.
func (w *watchdog) say(format string, args ...any) {
	if w.orders == nil {
		fmt.Fprintf(os.Stderr, "tenure: "+format+"\n", args...)
	}
}

// report tells tenure, if that lives.
func (w *watchdog) report(e event) {
	_ = w.events.SetWriteDeadline(time.Now().Add(time.Second)) // tenure may be frozen
	_ = send(w.events, e)
}

func (w *watchdog) watch() {
	for w.start == nil {
		w.waiter.wait(now().add(time.Hour), descriptor(w.orders))
		w.listen()
		if w.orders == nil {
			return
		}
	}
	if w.command == 0 {
		w.part()
		return
	}
	for {
		w.reap()
		next := w.act(now())
		if next == 0 {
			break
		}
		fds := []int{descriptor(w.children)}
		if w.orders != nil {
			fds = append(fds, descriptor(w.orders))
		}
		w.waiter.wait(next, fds...)
		_, _ = read(w.children)
		w.listen()
	}
	w.report(event{Kind: eventEnded, Result: Result{Code: code(w.status), Reason: w.reason, Killed: w.killed, Left: w.left}})
	w.part()
}

// partWithin is how long tenure has to say that it has heard of the end. One that is frozen for
// longer removes what is left when it goes on.
const partWithin = 10 * time.Second

// part waits until tenure has heard of the end, and does what is left to do where it is dead. It
// may die at the same time as the command, so that its pipe ends a moment later.
func (w *watchdog) part() {
	for until := now().add(partWithin); w.orders != nil && !w.parted && now() < until; {
		w.waiter.wait(until, descriptor(w.orders))
		w.listen()
	}
	if w.orders == nil && w.start.Remove != "" {
		_ = os.RemoveAll(w.start.Remove)
	}
}

// listen obeys what tenure has asked for by now.
func (w *watchdog) listen() {
	if w.orders == nil {
		return
	}
	p, ended := read(w.orders)
	for _, o := range w.box.add(p) {
		w.obey(o)
	}
	if ended {
		w.orders = nil
		if w.command != 0 {
			w.tell(ReasonOrphaned)
		}
	}
}

// descriptor is the number of a file, which stays as it is.
func descriptor(f *os.File) (number int) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { number = int(fd) })
	}
	return number
}

// write writes a byte, unless there is no room for it.
func write(f *os.File, b byte) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = syscall.Write(int(fd), []byte{b}) })
	}
}

// read reads what is there, without waiting, and reports whether nothing will come any more.
func read(f *os.File) (p []byte, ended bool) {
	buffer := make([]byte, 64<<10)
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, true
	}
	_ = raw.Control(func(fd uintptr) {
		n, err := syscall.Read(int(fd), buffer)
		p, ended = buffer[:max(n, 0)], n == 0 && err == nil
	})
	return p, ended
}

// begin starts the command. That is done with the order for it: others may have come with it.
func (w *watchdog) begin(s *start) {
	if now() >= w.deadline.load().add(-s.Grace) {
		w.report(event{Kind: eventFailed, Late: true})
		return
	}
	pid, err := w.fork(s)
	if err != nil {
		failed := event{Kind: eventFailed, Text: err.Error(), Result: Result{Code: 126}}
		if errors.Is(err, os.ErrNotExist) {
			failed.Result.Code = 127
		}
		w.report(failed)
		return
	}
	w.command, w.family.group = pid, pid
	w.report(event{Kind: eventStarted, Pid: pid})
}

func (w *watchdog) fork(s *start) (pid int, err error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	if s.Foreground {
		attr.Foreground, attr.Ctty = true, 0
	}
	return syscall.ForkExec(s.Path, s.Args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: attr})
}

// reap takes note of the ends of the command and of orphans.
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
			w.report(event{Kind: eventStopped})
		default:
			w.ended, w.status = true, status
		}
	}
}

func (w *watchdog) obey(o order) {
	switch {
	case o.Kind == orderStart:
		w.start = o.Start
		w.begin(o.Start)
	case o.Kind == orderPart:
		w.parted = true
	case w.command == 0:
	case o.Kind == orderTell:
		w.tell(ReasonContext)
	case o.Kind == orderSignal && !w.ended: // the number of the group is the command's until it is reaped
		s := syscall.Signal(o.Signal)
		_ = syscall.Kill(-w.command, s)
		if wakes(s) {
			_ = syscall.Kill(-w.command, syscall.SIGCONT)
		}
	}
}

// wakes reports whether a signal is to end a process, which one that is stopped does not see.
func wakes(s syscall.Signal) bool {
	return s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// act does what is due, and returns when it is to be called again at the latest, or 0 if all is
// over.
func (w *watchdog) act(at instant) instant {
	last := w.deadline.load()
	if w.ended {
		members := w.family.members()
		if len(members) == 0 {
			return 0
		}
		if w.left < len(members) {
			w.left = len(members)
		}
		w.tell("")
	}
	if at >= last.add(-w.start.Grace) {
		w.tell(ReasonDeadline)
	}
	killAt := last.add(-w.start.Margin)
	if w.told != 0 {
		killAt = min(killAt, w.told.add(w.start.Grace))
	}
	switch {
	case at >= killAt:
		w.kill()
		w.pause = min(2*w.pause, 40*settle) // a process in the kernel takes its time to die
		return at.add(w.pause)
	case w.ended:
		return min(killAt, at.add(4*settle)) // no signal tells of the end of others' children
	case w.told != 0:
		return killAt
	default:
		return last.add(-w.start.Grace)
	}
}

// tell asks all to end, once.
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
			w.say("tenure has died, and its lease runs out: the command is told to end, and killed in %v at the latest", w.start.Grace)
		}
	}
	w.family.signal(syscall.SIGTERM, w.stray)
	w.family.signal(syscall.SIGCONT, w.stray)
}

// stray reports whether a process is not told with the command's group.
func (w *watchdog) stray(p process) bool { return w.ended || p.group != w.command }

// kill kills all.
func (w *watchdog) kill() {
	if !w.killed {
		w.killed = true
		if w.told == 0 {
			w.reason = ReasonDeadline
		}
	}
	if !w.ended {
		_ = syscall.Kill(-w.command, syscall.SIGKILL)
	}
	_, refused := w.family.kill()
	for _, pid := range refused {
		if !w.refused[pid] {
			w.refused[pid] = true
			fmt.Fprintf(os.Stderr, "tenure: process %d is another user's and may not be killed: it may outlive the lease\n", pid)
		}
	}
}

// code is an exit code as a shell has it.
func code(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// idle is how often tenure looks whether the watchdog was stopped.
func idle(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 20*time.Millisecond), time.Second)
}
