// Package demotest follows a demonstration in tests, by the messages of its protocol, wherever it
// takes place.
package demotest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/examples/internal/demo"
)

// Soon is far more than anything takes.
const Soon = 4 * time.Minute

// Watcher knows what a demonstration has told. It is safe for concurrent use.
type Watcher struct {
	// Order gives an order, and returns the error with which it was answered; nil for none.
	Order func(demo.Order) error

	mu    sync.Mutex
	state demo.State        // guarded by mu
	items map[int]demo.Item // guarded by mu
	lines []demo.Line       // guarded by mu
	more  chan struct{}     // guarded by mu; closed with the next message
}

// New returns a Watcher that has been told nothing yet.
func New() *Watcher {
	return &Watcher{items: make(map[int]demo.Item), more: make(chan struct{})}
}

// Take takes a message.
func (w *Watcher) Take(message []byte) error {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(message, &head); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.more)
	w.more = make(chan struct{})
	var err error
	switch head.Type {
	case "state":
		w.state = demo.State{}
		err = json.Unmarshal(message, &w.state)
	case "item":
		var i demo.Item
		err = json.Unmarshal(message, &i)
		w.items[i.ID] = i
	case "line":
		var l demo.Line
		err = json.Unmarshal(message, &l)
		w.lines = append(w.lines, l)
	default:
		err = fmt.Errorf("there is no message of type %q", head.Type)
	}
	return err
}

// Await waits until done, which is called with what is known.
func (w *Watcher) Await(t *testing.T, text string, done func(demo.State, map[int]demo.Item) bool) demo.State {
	t.Helper()
	limit := time.NewTimer(Soon)
	defer limit.Stop()
	for {
		w.mu.Lock()
		state, ok, more := w.state, done(w.state, w.items), w.more
		w.mu.Unlock()
		if ok {
			return state
		}
		select {
		case <-more:
		case <-limit.C:
			t.Fatalf("waited in vain for: %s\n%+v\n%s", text, state, w.Log())
		}
	}
}

// AwaitLine waits for a line of the log with that text, after so many lines that were there before,
// and returns how many there are then.
func (w *Watcher) AwaitLine(t *testing.T, after int, text string) (count int) {
	t.Helper()
	w.Await(t, text, func(demo.State, map[int]demo.Item) bool {
		for i, l := range w.lines {
			if i >= after && strings.Contains(l.Text, text) {
				count = i + 1
				return true
			}
		}
		return false
	})
	return count
}

// AwaitLeader waits until another replica than that leads, and returns it.
func (w *Watcher) AwaitLeader(t *testing.T, not string) string {
	t.Helper()
	return w.Await(t, "another leader than "+not, func(s demo.State, _ map[int]demo.Item) bool {
		return s.Leader != "" && s.Leader != not
	}).Leader
}

// AwaitTicks waits until so many more ticks have run.
func (w *Watcher) AwaitTicks(t *testing.T, more int) {
	t.Helper()
	before := w.State().Counters.Ticks
	w.Await(t, "ticks", func(s demo.State, _ map[int]demo.Item) bool { return s.Counters.Ticks >= before+more })
}

// Do gives an order that must succeed.
func (w *Watcher) Do(t *testing.T, o demo.Order) {
	t.Helper()
	require.NoError(t, w.Order(o), "%+v\n%s", o, w.Log())
}

// State is the last that was told.
func (w *Watcher) State() demo.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Lines is how many lines of the log there are.
func (w *Watcher) Lines() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines)
}

// Log is the log, for the message of a failure.
func (w *Watcher) Log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out strings.Builder
	for _, l := range w.lines {
		fmt.Fprintf(&out, "%s %-5s %s\n", time.UnixMilli(l.At).Format("15:04:05.000"), l.Kind, l.Text)
	}
	return out.String()
}
