package elector

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

// postTimeout bounds how long an entry is on its way, in the background.
const postTimeout = 5 * time.Second

// entry is the beginning or the end of a term, for the election's history; false for none.
func (e *Elector) entry(t *Term, c Change) (redlock.Entry, bool) {
	if e.cfg.withoutHistory {
		return redlock.Entry{}, false
	}
	at := c.At
	if at.IsZero() {
		at = time.Now()
	}
	return bulletin.Term{
		Term: t.Number(), By: e.Identity(), Event: string(c.Kind), Reason: string(c.Reason), At: at.UnixMilli(),
	}.Entry(e.election)
}

// endWith has the release of a term's lease tell its end, unless people have been told.
func (e *Elector) endWith(t *Term, end Change) {
	if t.told != "" {
		return
	}
	select {
	case <-t.over:
		end = t.ended
	default:
	}
	if entry, ok := e.entry(t, end); ok && t.lease.EndWith(entry) == nil {
		t.told = end.Kind
	}
}

// postEnd tells the end of a term that its release does not tell, once it has ended.
func (e *Elector) postEnd(t *Term) {
	select {
	case <-t.over:
		if t.told != t.ended.Kind {
			t.told = t.ended.Kind
			e.post(t, t.ended)
		}
	default:
	}
}

// post tells a beginning or an end in the background.
func (e *Elector) post(t *Term, c Change) {
	entry, ok := e.entry(t, c)
	if !ok {
		return
	}
	e.posts.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), postTimeout)
		defer cancel()
		if _, err := e.q.Board().Post(ctx, nil, []redlock.Entry{entry}); err != nil {
			e.cfg.logger.DebugContext(ctx, "elector: no node took the entry of a term", "election", e.election, "term", t.Number(), "error", err)
		}
	})
}
