package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// console prints one aligned line for each thing that happens. It is safe for concurrent use.
type console struct {
	mu       sync.Mutex
	out, err io.Writer // guarded by mu
}

func newConsole(out, err io.Writer) *console { return &console{out: out, err: err} }

const (
	clockLayout = "15:04:05.000"
	tickLayout  = "15:04:05"
)

// event prints what somebody did, with the fencing token if there is one.
func (c *console) event(at time.Time, who, what string, token uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if token == 0 {
		fmt.Fprintf(c.out, "%s  %-23s  %s\n", at.Format(clockLayout), who, what)
		return
	}
	fmt.Fprintf(c.out, "%s  %-23s  %-20s  token %d\n", at.Format(clockLayout), who, what, token)
}

// say prints what the supervisor does now.
func (c *console) say(format string, args ...any) {
	c.event(time.Now(), "supervisor", fmt.Sprintf(format, args...), 0)
}

// note prints a line below the one before.
func (c *console) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, "%39s%s\n", "", fmt.Sprintf(format, args...))
}

// complaint passes on a line from a replica's standard error.
func (c *console) complaint(who, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.err, "%s: %s\n", who, line)
}

// plain prints text as it is.
func (c *console) plain(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, format, args...)
}

// clocks lists ticks.
func clocks(ticks []time.Time) string {
	texts := make([]string, len(ticks))
	for i, t := range ticks {
		texts[i] = t.Format(tickLayout)
	}
	return strings.Join(texts, ", ")
}
