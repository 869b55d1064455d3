package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

const (
	// beatEvery is how often a stream without events sends a sign of life.
	beatEvery = 15 * time.Second
	// writeWithin bounds a write to a stream.
	writeWithin = 5 * time.Second
	// mostEvents is how many events are kept for streams. A stream that reads less often misses
	// some.
	mostEvents = 64
	// gather is how long changes are collected before they are written.
	gather = 250 * time.Millisecond
)

// since returns the news of this snapshot, compared with an earlier one, as text of a stream.
func (s *snapshot) since(was *snapshot) []byte {
	happened := s.happened - was.happened
	text := slices.Concat(s.events[max(len(s.events)-happened, 0):]...)
	if happened > len(s.events) {
		text = append(text, missedText...)
	}
	var told []string
	for p, seq := range s.told {
		if seq > was.seq {
			told = append(told, part(p).String())
		}
	}
	if told != nil {
		text = append(text, eventText("change", changeEvent{view.At(time.Now()), s.seq, told})...)
	}
	return text
}

type changeEvent struct {
	Now   view.Time `json:"now"`
	Seq   uint64    `json:"seq"`
	Parts []string  `json:"parts"`
}

// missedText is the event that reports missed ones.
var missedText = eventText("missed", struct{}{})

// eventText returns an event as text of a stream.
func eventText(name string, data any) []byte {
	text, err := view.JSON(data)
	if err != nil { // it cannot fail for the types used here
		text = []byte("{}")
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, text)
}

// watch has the affected parts read as soon as something happens, and passes events on to streams.
func (f *feed) watch(ctx context.Context) {
	for c, err := range f.admin.Watch(ctx) {
		if err != nil {
			return
		}
		var event []byte
		switch {
		case c.Run != nil:
			f.touch(c.Run.Job)
			event = eventText("run", view.NewPast(*c.Run))
		case c.Skip != nil:
			f.touch(c.Skip.Job)
			event = eventText("skip", view.NewSkip(*c.Skip))
		case c.Term != nil:
			f.loops[partElections].hurry()
			event = eventText("term", view.NewTermChange(*c.Term))
		case c.Order != nil:
			f.news(c.Order.Kind, c.Order.Target)
			event = eventText("order", view.NewOrder(*c.Order))
		default:
			for _, l := range f.loops {
				l.hurry()
			}
			event = missedText
		}
		f.publish(func(s *snapshot) {
			s.seq-- // pages show it when the part has been read
			s.happened++
			s.events = append(slices.Clone(s.events[max(len(s.events)+1-mostEvents, 0):]), event)
		})
	}
}

// join counts a stream, if there are fewer than most.
func (f *feed) join(most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down.Err() != nil || f.streams >= most {
		return false
	}
	f.streams++
	return true
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams--
}

// events sends a stream of events until the reader goes, its lifetime ends, or Close.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) *refusal {
	h.feed.want()
	out := http.NewResponseController(w)
	if err := out.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		h.streamless.Do(func() {
			h.logger.WarnContext(r.Context(), "web: no stream of events: what wraps the handler hides deadlines; give its ResponseWriter an Unwrap method", "error", err)
		})
		return refused(http.StatusNotImplemented, "Events cannot be sent through what wraps this page.")
	}
	if !h.feed.join(h.streams) {
		w.Header().Set("Retry-After", "10")
		return refused(http.StatusServiceUnavailable, "Too many pages follow the events, or the page is closed.")
	}
	defer h.feed.leave()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
	if r.Method == http.MethodHead {
		return nil
	}
	write := func(text []byte) bool {
		if out.SetWriteDeadline(time.Now().Add(writeWithin)) != nil {
			return false
		}
		_, err := w.Write(text)
		// With HTTP/2 a deadline that passes after its write would end the stream.
		return err == nil && out.Flush() == nil && out.SetWriteDeadline(time.Time{}) == nil
	}
	was, changed := h.feed.peek()
	hello := eventText("hello", changeEvent{Now: view.At(time.Now()), Seq: was.seq})
	if !write(append([]byte("retry: 2000\n\n"), hello...)) {
		return nil
	}
	life, beat := time.After(h.lifetime), time.Tick(beatEvery)
	var gathered <-chan time.Time
	for {
		text := []byte(nil)
		select {
		case <-changed: // more changes may follow at once
			changed, gathered = nil, time.After(gather)
		case <-gathered:
			before := was
			was, changed = h.feed.peek()
			text = was.since(before)
		case <-beat:
			text = []byte(": beat\n\n")
		case <-life:
			write(eventText("bye", map[string]string{"why": "lifetime"}))
			return nil
		case <-h.feed.down.Done():
			write(eventText("bye", map[string]string{"why": "closed"}))
			return nil
		case <-r.Context().Done():
			return nil
		}
		if len(text) > 0 && !write(text) {
			return nil
		}
	}
}
