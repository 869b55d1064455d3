//go:build linux

package supervise

import (
	"encoding/gob"
	"os"
)

// orderTell has the watchdog end the command. Any other order, each a byte, is the number of a
// signal to forward.
const orderTell = 0

// event is a message from the watchdog to tenure: one of these.
type event struct {
	Started int     // the command, with this pid
	Stopped bool    // it was, by a signal, as of a terminal
	Late    bool    // it was not started, because too little of the lease is left
	Failed  string  // why it was not started, with the Result
	Result  *Result // it has ended, and all that it has left behind
}

// receive returns events until the watchdog is gone, and closes the channel then. The file stays
// the caller's.
func receive(file *os.File) <-chan event {
	events := make(chan event)
	go func() {
		defer close(events)
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
