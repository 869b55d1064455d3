package elector

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/bulletin"
)

// postTimeout bounds how long an entry is on its way.
const postTimeout = 5 * time.Second

// post writes the beginning or the end of a term into the history, in the background. Only Run
// waits for it, at its end. The end of a term is missing if no node takes the entry, or if the
// process dies first. It then follows from the next term, whose entry says for how long there was
// no leader.
func (e *Elector) post(t *Term, c Change) {
	at := t.began
	if c.Kind != Elected {
		if at = time.Now(); t.Deadline().Before(at) {
			at = t.Deadline() // a process that stood still writes late
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
