package elector

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
)

// postTimeout bounds how long an entry is on its way, in the background.
const postTimeout = 5 * time.Second

// post tells people, in the background, of the beginning or the end of a term. Nothing waits for it
// but Run, at its end. What no node takes, or a process that dies has not sent, is told by nobody:
// people see the term without an end, as that of a leader that was killed.
func (e *Elector) post(t *Term, c Change) {
	entry, ok := bulletin.Term{
		Term: t.Number(), By: e.Identity(), Event: string(c.Kind), Reason: string(c.Reason), At: time.Now().UnixMilli(),
	}.Entry(e.election)
	if e.cfg.withoutHistory || !ok {
		return
	}
	e.posts.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), postTimeout)
		defer cancel()
		_ = board.Of(e.q).Post(ctx, nil, entry)
	})
}
