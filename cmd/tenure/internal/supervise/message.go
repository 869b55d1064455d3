//go:build linux

package supervise

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"io"
	"os"
	"time"
)

// orderKind is what tenure asks of the watchdog.
type orderKind int

const (
	orderStart  orderKind = iota + 1
	orderSignal           // forward one
	orderTell             // end the command
	orderPart             // tenure has heard of the end, and does what is left to do
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

// send writes a message: its length in four bytes, and gob.
func send(w io.Writer, message any) error {
	var b bytes.Buffer
	b.Write(make([]byte, 4))
	if err := gob.NewEncoder(&b).Encode(message); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(b.Bytes(), uint32(b.Len()-4))
	_, err := w.Write(b.Bytes())
	return err
}

// mailbox takes bytes as they come, and makes messages of them.
type mailbox[T any] struct{ rest []byte }

// add takes bytes, and returns the messages that are whole now.
func (m *mailbox[T]) add(p []byte) (whole []T) {
	m.rest = append(m.rest, p...)
	for len(m.rest) >= 4 {
		size := int(binary.BigEndian.Uint32(m.rest))
		if len(m.rest)-4 < size {
			return whole
		}
		var message T
		if gob.NewDecoder(bytes.NewReader(m.rest[4:4+size])).Decode(&message) == nil {
			whole = append(whole, message)
		}
		m.rest = m.rest[4+size:]
	}
	return whole
}

// receive returns messages until the other side is gone, and closes the channel then.
func receive[T any](file *os.File) <-chan T {
	messages := make(chan T)
	go func() {
		defer close(messages)
		defer func() { _ = file.Close() }()
		var box mailbox[T]
		for p := make([]byte, 4096); ; {
			n, err := file.Read(p)
			for _, m := range box.add(p[:n]) {
				messages <- m
			}
			if err != nil {
				return
			}
		}
	}()
	return messages
}
