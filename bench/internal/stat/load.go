package stat

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Load is the processors' time of a machine since it was started. Own is the part that this process
// used, and the processes that it has started and waited for.
type Load struct {
	All  time.Duration // of all processors, idle or not
	Busy time.Duration
	Own  time.Duration
}

// LoadNow reads the load. It reports false where there is no /proc.
func LoadNow() (Load, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Load{}, false
	}
	l := parseLoad(string(text))
	l.Own = used(syscall.RUSAGE_SELF) + used(syscall.RUSAGE_CHILDREN)
	return l, true
}

// used returns user and system time by getrusage(2).
func used(who int) time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(who, &r) // it cannot fail
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// Foreign returns the part of all processors' time between two loads that other processes took:
// 0.25 is one of four processors. That includes time that a hypervisor gave to another machine.
// Ticks are coarse.
func Foreign(before, after Load) float64 {
	busy, own := after.Busy-before.Busy, after.Own-before.Own
	return float64(max(busy-own, 0)) / float64(max(after.All-before.All, 1))
}

// tick is the unit of /proc, nearly everywhere.
const tick = 10 * time.Millisecond

// parseLoad reads the first line of /proc/stat, see proc_stat(5).
//
// Some kernels measure the time of interrupts (CONFIG_IRQ_TIME_ACCOUNTING), and count it to no
// process. Other kernels find it by the tick, and count it to the process that was interrupted.
// With sockets on loopback, the time of soft interrupts is mostly that of the sockets' own users.
// So it is busy time on the other kernels only. These have no time of hard interrupts, during which
// there is no tick.
func parseLoad(text string) Load {
	var user, nice, system, idle, ioWait, irq, softIRQ, steal time.Duration
	_, _ = fmt.Sscan(strings.TrimPrefix(text, "cpu"), &user, &nice, &system, &idle, &ioWait, &irq, &softIRQ, &steal)
	all, busy := user+nice+system+idle+ioWait+irq+softIRQ+steal, user+nice+system+steal
	if irq == 0 {
		busy += softIRQ
	}
	return Load{All: all * tick, Busy: busy * tick}
}
