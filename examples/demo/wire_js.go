package main

import (
	"net"
	"sync"

	"syscall/js"
)

// wires are the connections of an instance, which the host carries.
type wires struct {
	api js.Value

	mu    sync.Mutex
	conns map[int]*queue[[]byte] // guarded by mu
}

// newWires takes what the host brings.
func newWires(api js.Value) *wires {
	w := &wires{api: api, conns: make(map[int]*queue[[]byte])}
	api.Set("receive", js.FuncOf(func(_ js.Value, args []js.Value) any {
		w.mu.Lock()
		q := w.conns[args[0].Int()]
		w.mu.Unlock()
		switch {
		case q == nil:
		case args[1].IsNull():
			q.close()
		default:
			b := make([]byte, args[1].Length())
			js.CopyBytesToGo(b, args[1])
			q.put(b)
		}
		return nil
	}))
	return w
}

// open returns this end of a connection. Two goroutines carry what passes, until it is closed at
// either end.
func (w *wires) open(id int) net.Conn {
	outer, inner := net.Pipe()
	q := newQueue[[]byte]()
	w.mu.Lock()
	w.conns[id] = q
	w.mu.Unlock()
	go func() { // what comes in
		defer inner.Close()
		for {
			b, ok := q.take()
			if !ok {
				return
			}
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
		w.mu.Lock()
		delete(w.conns, id)
		w.mu.Unlock()
		q.close()
		w.api.Call("close", id)
	}()
	return outer
}

// queue is what waits to be taken, in order. To put something never blocks. It is safe for
// concurrent use.
type queue[T any] struct {
	mu     sync.Mutex
	more   *sync.Cond // on mu
	items  []T        // guarded by mu
	closed bool       // guarded by mu
}

func newQueue[T any]() *queue[T] {
	q := &queue[T]{}
	q.more = sync.NewCond(&q.mu)
	return q
}

func (q *queue[T]) put(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, item)
	q.more.Signal()
}

// close ends the queue once it is empty.
func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}

// take waits for an item. It returns false when the queue is closed and empty.
func (q *queue[T]) take() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.more.Wait()
	}
	if len(q.items) == 0 {
		return item, false
	}
	item = q.items[0]
	q.items = q.items[1:]
	return item, true
}
