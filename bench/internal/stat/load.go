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

// LoadNow reads it. It reports false where there is no /proc, or none that counts.
func LoadNow() (Load, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Load{}, false
	}
	l, err := parseLoad(string(text))
	if err != nil {
		return Load{}, false
	}
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(names) == 0 {
		return Load{}, false
	}
	var all []process
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		p, err := parseProcess(string(text))
		if err != nil {
			return Load{}, false
		}
		all = append(all, p)
	}
	l.Own = ticksOf(os.Getpid(), all)
	return l, l.Own > 0
}

// Foreign returns which part of all processors' time between two loads was others': 0.25 is one of
// four processors. Time that a hypervisor gave to another machine is theirs too. It reports false
// if no time has passed.
func Foreign(before, after Load) (share float64, ok bool) {
	if after.All <= before.All {
		return 0, false
	}
	busy, own := after.Busy-before.Busy, after.Own-before.Own
	if after.Busy < before.Busy || after.Own < before.Own || busy < own {
		return 0, true // ticks are coarse
	}
	return float64(busy-own) / float64(after.All-before.All), true
}

// The fields of the first line of /proc/stat, see proc_stat(5).
const (
	statUser = iota
	statNice
	statSystem
	statIdle
	statIOWait
	statIRQ
	statSoftIRQ
	statSteal
	statFields
)

// parseLoad reads /proc/stat.
//
// Some kernels measure the time of interrupts (CONFIG_IRQ_TIME_ACCOUNTING), and count it to no
// process; others find it by the tick, and count it to the process that was interrupted. With
// sockets on loopback it is that of their own users for the most part. So it is busy time with the
// others only: those have none of hard interrupts, during which there is no tick.
func parseLoad(text string) (Load, error) {
	line, _, _ := strings.Cut(text, "\n")
	words := strings.Fields(line)
	if len(words) <= statFields || words[0] != "cpu" {
		return Load{}, fmt.Errorf("stat: unexpected /proc/stat: %.100q", line)
	}
	var v [statFields]uint64
	var l Load
	for i := range v {
		ticks, err := strconv.ParseUint(words[1+i], 10, 64)
		if err != nil {
			return Load{}, fmt.Errorf("stat: unexpected /proc/stat: %.100q", line)
		}
		v[i] = ticks
		l.All += ticks
	}
	l.Busy = v[statUser] + v[statNice] + v[statSystem] + v[statSteal]
	if v[statIRQ] == 0 {
		l.Busy += v[statSoftIRQ]
	}
	return l, nil
}

// process is a line of /proc/PID/stat.
type process struct {
	pid, parent int
	ticks       uint64 // its own, and those of children that it has waited for
}

// parseProcess reads one. The name of the program, in parentheses, may have any characters.
func parseProcess(text string) (p process, err error) {
	unexpected := fmt.Errorf("stat: unexpected /proc/PID/stat: %.100q", text)
	open, end := strings.Index(text, " ("), strings.LastIndex(text, ") ")
	if open < 0 || end < open {
		return p, unexpected
	}
	// What follows the name begins with the third field.
	const parent, utime, cstime = 4 - 3, 14 - 3, 17 - 3
	words := strings.Fields(text[end+1:])
	if len(words) <= cstime {
		return p, unexpected
	}
	if p.pid, err = strconv.Atoi(text[:open]); err != nil {
		return p, unexpected
	}
	if p.parent, err = strconv.Atoi(words[parent]); err != nil {
		return p, unexpected
	}
	for _, word := range words[utime : cstime+1] {
		ticks, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return p, unexpected
		}
		p.ticks += ticks
	}
	return p, nil
}

// ticksOf adds up those of a process and of all that descend from it.
func ticksOf(pid int, all []process) (sum uint64) {
	children := make(map[int][]process)
	for _, p := range all {
		if p.pid == pid {
			sum += p.ticks
		}
		children[p.parent] = append(children[p.parent], p)
	}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			sum += p.ticks
			next = append(next, p.pid)
		}
	}
	return sum
}
