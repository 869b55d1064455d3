package main

import (
	"net"
	"sync"

	"syscall/js"
)

// backlog is how many messages may wait in a channel. A function that JavaScript calls must not
// wait for room.
const backlog = 4096

// wires has the connections of an instance, which the host carries.
type wires struct {
	api   js.Value
	conns sync.Map // channels of what comes in, by connection; a channel is closed when it is removed
}

// newWires returns wires that take what the host delivers.
func newWires(api js.Value) *wires {
	w := &wires{api: api}
	api.Set("receive", js.FuncOf(func(_ js.Value, args []js.Value) any {
		id := args[0].Int()
		if args[1].IsNull() {
			w.end(id)
			return nil
		}
		b := make([]byte, args[1].Length())
		js.CopyBytesToGo(b, args[1])
		in, _ := w.conns.Load(id) // nil once the connection has ended
		to, _ := in.(chan []byte)
		select {
		case to <- b:
		default:
			w.end(id) // as for a peer that does not read
		}
		return nil
	}))
	return w
}

// end ends the incoming side of a connection.
func (w *wires) end(id int) {
	if in, open := w.conns.LoadAndDelete(id); open {
		close(in.(chan []byte))
	}
}

// open returns this instance's end of a connection. Two goroutines carry the data, until either end
// closes the connection.
func (w *wires) open(id int) net.Conn {
	outer, inner := net.Pipe()
	in := make(chan []byte, backlog)
	w.conns.Store(id, in)
	go func() { // incoming data
		defer inner.Close()
		for b := range in {
			if _, err := inner.Write(b); err != nil {
				return
			}
		}
	}()
	go func() { // outgoing data
		buffer := make([]byte, 32<<10)
		for {
			n, err := inner.Read(buffer)
			if n > 0 {
				bytes := js.Global().Get("Uint8Array").New(n)
				js.CopyBytesToJS(bytes, buffer[:n])
				w.api.Call("send", id, bytes)
			}
			if err != nil {
				break
			}
		}
		w.end(id)
		w.api.Call("close", id)
	}()
	return outer
}
