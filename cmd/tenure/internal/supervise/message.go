//go:build linux

package supervise

import (
	"encoding/gob"
	"os"
)

// orderTell is the order to end the command. An order is one byte. Any other value is the number of
// a signal to forward.
const orderTell = 0

// event is a message from the watchdog to tenure. One of its fields is set, or Failed together with
// Result.
type event struct {
	Started int     // the command was started with this pid
	Stopped bool    // a signal stopped the command, as a terminal does
	Late    bool    // the command was not started: too little of the lease is left
	Failed  string  // why the command could not be started; Result has the exit code
	Result  *Result // how the command ended; the processes that it left behind have ended too
}

// receive returns a channel of the events from the watchdog, and closes it when the watchdog is
// gone. The caller still owns the file.
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
