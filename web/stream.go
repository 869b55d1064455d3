package web

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

const (
	// beatEvery is how often a stream says that it lives, if it has nothing else to say.
	beatEvery = 15 * time.Second
	// writeWithin is what a reader of a stream may take for what is written at once.
	writeWithin = 5 * time.Second
	// mostWaiting are the happenings that wait for a reader.
	mostWaiting = 64
	// gather is for how long happenings are gathered before they are written.
	gather = 250 * time.Millisecond
)

// follower is a stream of events, as the feed sees it, whose lock guards it.
type follower struct {
	wake   chan struct{} // has one if there is something
	parts  []part        // that were read anew
	events [][]byte      // at most mostWaiting
	missed bool          // there were more
}

// changed notes that parts were read anew.
func (f *follower) changed(parts []part) {
	for _, p := range parts {
		if !slices.Contains(f.parts, p) {
			f.parts = append(f.parts, p)
		}
		f.rouse()
	}
}

// happened notes an event.
func (f *follower) happened(event []byte) {
	if len(f.events) < mostWaiting {
		f.events = append(f.events, event)
	} else {
		f.missed = true
	}
	f.rouse()
}

func (f *follower) rouse() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns what there is to write for one that follows.
func (f *feed) take(to *follower) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b bytes.Buffer
	for _, e := range to.events {
		b.Write(e)
	}
	if to.missed {
		b.Write(eventText("missed", struct{}{}))
	}
	if len(to.parts) > 0 {
		b.Write(eventText("change", changeEvent{view.At(time.Now()), f.now.seq, view.All(to.parts, part.String)}))
	}
	to.events, to.missed, to.parts = nil, false, nil
	return b.Bytes()
}

type changeEvent struct {
	Now   view.Time `json:"now"`
	Seq   uint64    `json:"seq"`
	Parts []string  `json:"parts"`
}

// eventText is an event as a stream has it.
func eventText(name string, data any) []byte {
	text, err := view.JSON(data)
	if err != nil { // of the types here it does not fail
		text = []byte("{}")
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, text)
}

// tell tells those that follow what has happened.
func (f *feed) tell(c admin.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.follow) == 0 {
		return
	}
	event := happening(c)
	for to := range f.follow {
		to.happened(event)
	}
}

// happening is the event of a change.
func happening(c admin.Change) []byte {
	switch {
	case c.Run != nil:
		return eventText("run", view.NewPast(*c.Run))
	case c.Skip != nil:
		return eventText("skip", view.NewSkip(*c.Skip))
	case c.Term != nil:
		return eventText("term", view.NewTermChange(*c.Term))
	case c.Order != nil:
		return eventText("order", view.NewOrder(*c.Order))
	default:
		return eventText("missed", struct{}{})
	}
}

// join adds a follower if there are less than so many, and returns which snapshot it begins with.
func (f *feed) join(most int) (to *follower, seq uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down.Err() != nil || len(f.follow) >= most {
		return nil, 0
	}
	to = &follower{wake: make(chan struct{}, 1)}
	f.follow[to] = struct{}{}
	return to, f.now.seq
}

func (f *feed) leave(to *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.follow, to)
}

// events is a stream of events: until the reader goes, its lifetime is over, or Close.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	h.feed.want()
	out := http.NewResponseController(w)
	if err := out.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		h.streamless.Do(func() {
			h.logger.WarnContext(r.Context(), "web: no stream of events: what wraps the handler hides deadlines; give its ResponseWriter an Unwrap method", "error", err)
		})
		h.fail(w, r, http.StatusNotImplemented, "Events cannot be sent through what wraps this page.")
		return
	}
	to, seq := h.feed.join(h.streams)
	if to == nil {
		w.Header().Set("Retry-After", "10")
		h.fail(w, r, http.StatusServiceUnavailable, "Too many pages follow the events, or the page is closed.")
		return
	}
	defer h.feed.leave(to)
	header := w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return
	}
	write := func(text []byte) bool {
		if out.SetWriteDeadline(time.Now().Add(writeWithin)) != nil {
			return false
		}
		_, err := w.Write(text)
		// With HTTP/2 the deadline of a write that has ended would end the stream.
		return err == nil && out.Flush() == nil && out.SetWriteDeadline(time.Time{}) == nil
	}
	hello := eventText("hello", changeEvent{Now: view.At(time.Now()), Seq: seq})
	if !write(append([]byte("retry: 2000\n\n"), hello...)) {
		return
	}
	life, beat := time.NewTimer(h.lifetime), time.NewTicker(beatEvery)
	defer life.Stop()
	defer beat.Stop()
	var gathered <-chan time.Time
	for {
		text := []byte(nil)
		select {
		case <-to.wake:
			if gathered == nil { // more may come at once
				gathered = time.After(gather)
			}
		case <-gathered:
			gathered, text = nil, h.feed.take(to)
		case <-beat.C:
			text = []byte(": beat\n\n")
		case <-life.C:
			write(eventText("bye", byeEvent{"lifetime"}))
			return
		case <-h.feed.down.Done():
			write(eventText("bye", byeEvent{"closed"}))
			return
		case <-r.Context().Done():
			return
		}
		if len(text) > 0 && !write(text) {
			return
		}
	}
}

type byeEvent struct {
	Why string `json:"why"`
}
