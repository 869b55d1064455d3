package stat

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Load is what the processors of a machine have done since it was started, and what of it was done
// for this process and those that it has started. The unit is the tick of /proc, a hundredth of a
// second nearly everywhere.
type Load struct {
	All  uint64 // of all processors, idle or not
	Busy uint64
	Own  uint64
}

// LoadNow reads it. It reports false where there is no /proc.
func LoadNow() (Load, bool) {
	text, err := os.ReadFile("/proc/stat")
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return Load{}, false
	}
	l := parseLoad(string(text))
	var all []process
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil { // or it has ended
			all = append(all, parseProcess(string(text)))
		}
	}
	l.Own = ticksOf(os.Getpid(), all)
	return l, l.Own > 0
}

// Foreign returns which part of all processors' time between two loads was others': 0.25 is one of
// four processors. Time that a hypervisor gave to another machine is theirs too. Ticks are coarse.
func Foreign(before, after Load) float64 {
	busy, own := int64(after.Busy-before.Busy), int64(after.Own-before.Own)
	return float64(max(busy-own, 0)) / float64(max(after.All-before.All, 1))
}

// parseLoad reads the first line of /proc/stat, see proc_stat(5).
//
// Some kernels measure the time of interrupts (CONFIG_IRQ_TIME_ACCOUNTING), and count it to no
// process; others find it by the tick, and count it to the process that was interrupted. With
// sockets on loopback it is that of their own users for the most part. So it is busy time with the
// others only: those have none of hard interrupts, during which there is no tick.
func parseLoad(text string) Load {
	var user, nice, system, idle, ioWait, irq, softIRQ, steal uint64
	_, _ = fmt.Sscan(strings.TrimPrefix(text, "cpu"), &user, &nice, &system, &idle, &ioWait, &irq, &softIRQ, &steal)
	l := Load{All: user + nice + system + idle + ioWait + irq + softIRQ + steal, Busy: user + nice + system + steal}
	if irq == 0 {
		l.Busy += softIRQ
	}
	return l
}

// process is a line of /proc/PID/stat.
type process struct {
	pid, parent int
	ticks       uint64 // its own, and those of children that it has waited for
}

// parseProcess reads one. The name of the program, in parentheses, may have any characters.
func parseProcess(text string) (p process) {
	_, _ = fmt.Sscan(text, &p.pid)
	// What follows the name begins with the third field.
	const parent, utime, cstime = 4 - 3, 14 - 3, 17 - 3
	if fields := strings.Fields(text[strings.LastIndex(text, ") ")+1:]); len(fields) > cstime {
		p.parent, _ = strconv.Atoi(fields[parent])
		for _, field := range fields[utime : cstime+1] {
			ticks, _ := strconv.ParseUint(field, 10, 64)
			p.ticks += ticks
		}
	}
	return p
}

// ticksOf adds up those of a process and of all that descend from it.
func ticksOf(pid int, all []process) (sum uint64) {
	for _, p := range all {
		if p.pid == pid {
			sum += p.ticks
		}
		if p.parent == pid {
			sum += ticksOf(p.pid, all)
		}
	}
	return sum
}
