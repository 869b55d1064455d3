//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package supervise

import (
	"encoding/gob"
	"os"
	"time"
)

// orderKind is what tenure asks of the watchdog.
type orderKind int

const (
	orderStart  orderKind = iota + 1
	orderSignal           // forward one
	orderTell             // end the command
)

// order is a message from tenure to the watchdog.
type order struct {
	Kind   orderKind
	Signal int
	Start  *start
}

// start is what is to be started. The environment is the watchdog's own.
type start struct {
	Path          string
	Args          []string
	Grace, Margin time.Duration
	Cgroup        string // of the command alone; empty for none
	Foreground    bool   // the command gets the terminal that is standard input
	Remove        string // directory to remove if tenure dies
}

// eventKind is what the watchdog reports.
type eventKind int

const (
	eventStarted eventKind = iota + 1
	eventFailed            // not started
	eventStopped           // by a signal, as of a terminal
	eventEnded             // the command, and all that it has left behind
)

// event is a message from the watchdog to tenure.
type event struct {
	Kind   eventKind
	Pid    int
	Late   bool // not started, because too little of the lease is left
	Text   string
	Result Result
}

// receive decodes messages until the other side is gone, and closes the channel then.
func receive[T any](file *os.File) <-chan T {
	messages := make(chan T)
	go func() {
		defer close(messages)
		defer func() { _ = file.Close() }()
		for d := gob.NewDecoder(file); ; {
			var m T
			if d.Decode(&m) != nil {
				return
			}
			messages <- m
		}
	}()
	return messages
}
