package elector

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/bulletin"
)

// postTimeout bounds how long an entry is on its way, in the background.
const postTimeout = 5 * time.Second

// post tells people, in the background, of the beginning or the end of a term. Nothing waits for it
// but Run, at its end. The end of a term that no node takes, or that a process that dies has not
// sent, follows from the next term: its leader tells for how long nobody had led.
func (e *Elector) post(t *Term, c Change) {
	at := t.began
	if c.Kind != Elected {
		if at = time.Now(); t.Deadline().Before(at) {
			at = t.Deadline() // a process that stood still tells of it late
		}
	}
	told := bulletin.Term{Term: t.Number(), By: e.Identity(), Event: string(c.Kind), Reason: string(c.Reason), At: at.UnixMilli()}
	if vacant := bridge.Vacant(t.lease); c.Kind == Elected && vacant > 0 {
		told.Vacant = max(vacant.Milliseconds(), 1)
	}
	entry, ok := told.Entry(e.election)
	if e.cfg.withoutHistory || !ok {
		return
	}
	entry.At = bridge.Of(e.q).Time() // here, so that a beginning and an end at one moment keep their order
	e.posts.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), postTimeout)
		defer cancel()
		_ = board.Of(e.q).Post(ctx, nil, entry)
	})
}
