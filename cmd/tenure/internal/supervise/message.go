//go:build linux

package supervise

import (
	"encoding/gob"
	"os"
)

// orderTell has the watchdog end the command. Any other order, each a byte, is the number of a
// signal to forward.
const orderTell = 0

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

// receive returns events until the watchdog is gone, and closes the channel then.
func receive(file *os.File) <-chan event {
	events := make(chan event)
	go func() {
		defer close(events)
		defer func() { _ = file.Close() }()
		for from := gob.NewDecoder(file); ; {
			var e event
			if from.Decode(&e) != nil {
				return
			}
			events <- e
		}
	}()
	return events
}
