package main

import (
	"net"
	"sync"

	"syscall/js"
)

// backlog is how much may wait to be taken: functions that JavaScript calls must not wait.
const backlog = 4096

// wires are the connections of an instance, which the host carries.
type wires struct {
	api js.Value

	mu    sync.Mutex
	conns map[int]chan []byte // guarded by mu; who takes one out closes it
}

// newWires takes what the host brings.
func newWires(api js.Value) *wires {
	w := &wires{api: api, conns: make(map[int]chan []byte)}
	api.Set("receive", js.FuncOf(func(_ js.Value, args []js.Value) any {
		id := args[0].Int()
		if args[1].IsNull() {
			w.end(id)
			return nil
		}
		b := make([]byte, args[1].Length())
		js.CopyBytesToGo(b, args[1])
		w.mu.Lock()
		in := w.conns[id] // nil once it has ended
		w.mu.Unlock()
		select {
		case in <- b:
		default:
			w.end(id) // as a connection whose peer does not read
		}
		return nil
	}))
	return w
}

// end ends what comes in.
func (w *wires) end(id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if in := w.conns[id]; in != nil {
		close(in)
	}
	delete(w.conns, id)
}

// open returns this end of a connection. Two goroutines carry what passes, until it is closed at
// either end.
func (w *wires) open(id int) net.Conn {
	outer, inner := net.Pipe()
	in := make(chan []byte, backlog)
	w.mu.Lock()
	w.conns[id] = in
	w.mu.Unlock()
	go func() { // what comes in
		defer inner.Close()
		for b := range in {
			if _, err := inner.Write(b); err != nil {
				return
			}
		}
	}()
	go func() { // what goes out
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
