package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/view"
)

func newWatch(p *program) *cobra.Command {
	return p.reaches(&cobra.Command{
		Use:   "watch",
		Short: "Jobs as they happen: runs that begin and end, ticks that are not run, terms, orders",
		Long: `One line for each thing that happens from now on, until it is interrupted: first the runs that go
on. What replicas tell comes at once. Beginnings are read every two seconds, so of a shorter run
there may be the end alone.`,
		Example: `  tenure watch
  tenure watch -o json | jq 'select(.event == "ended" and .past.outcome != "ok")'`,
	}, forever, func(ctx context.Context, c *cluster, _ []string) (document, error) {
		err := c.watch(ctx, p.show)
		if ctx.Err() != nil { // it was interrupted, or --timeout has passed
			err = nil
		}
		return nil, err
	})
}

const (
	forever = 365 * 24 * time.Hour
	// watchEvery is how often watch looks for runs that have begun. If a look takes long, the pause
	// after it is nine times as long, so looks take a tenth of the time at most.
	watchEvery = 2 * time.Second
)

// happening is one line of the output of `tenure watch`.
type happening struct {
	Now   view.Time        `json:"now"`
	Event string           `json:"event"` // began, ended, skipped, term, order, missed or unread
	Run   *view.Run        `json:"run"`
	Past  *view.Past       `json:"past"`
	Skip  *view.Skip       `json:"skip"`
	Term  *view.TermChange `json:"term"`
	Order *view.Order      `json:"order"`
	Error string           `json:"error"`
}

// newHappening makes a happening of a change.
func newHappening(c admin.Change) *happening {
	switch {
	case c.Run != nil:
		return &happening{Event: "ended", Past: new(view.NewPast(*c.Run))}
	case c.Skip != nil:
		return &happening{Event: "skipped", Skip: new(view.NewSkip(*c.Skip))}
	case c.Term != nil:
		return &happening{Event: "term", Term: view.NewTermChange(*c.Term)}
	case c.Order != nil:
		return &happening{Event: "order", Order: new(view.NewOrder(*c.Order))}
	default:
		return &happening{Event: "missed"}
	}
}

// watch shows what happens until ctx ends.
func (c *cluster) watch(ctx context.Context, show func(document) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	tell := func(h *happening) {
		mu.Lock()
		defer mu.Unlock()
		h.Now = now()
		if err := show(h); err != nil {
			cancel(err)
		}
	}
	var hearing sync.WaitGroup
	hearing.Go(func() {
		for change, err := range c.Watch(ctx) {
			if err != nil {
				cancel(err)
				return
			}
			tell(newHappening(change))
		}
	})
	defer hearing.Wait()
	defer cancel(nil)
	running, unread := make(map[string]view.Number), ""
	for first := true; ctx.Err() == nil; first = false {
		began := time.Now()
		err := c.begun(ctx, running, tell)
		if err != nil && first {
			return err
		}
		if text := view.Error(err); text != unread && ctx.Err() == nil {
			if unread = text; text != "" {
				tell(&happening{Event: "unread", Error: text})
			}
		}
		_ = clock.Sleep(ctx, max(watchEvery, 9*time.Since(began)))
	}
	return context.Cause(ctx)
}

// begun tells of the runs that have begun since the last call. The map running has the token of the
// last run that was told of each job.
func (c *cluster) begun(ctx context.Context, running map[string]view.Number, tell func(*happening)) error {
	for status, err := range c.Jobs(ctx) {
		if err != nil {
			return err
		}
		if r := view.NewJob(status, time.Now()).Running; r != nil && running[r.Job] != r.Token {
			running[r.Job] = r.Token
			tell(&happening{Event: "began", Run: r})
		}
	}
	return nil
}

func (h *happening) text(w *page) {
	what := "changes came faster than they could be read, and were lost: see tenure runs"
	switch {
	case h.Run != nil:
		what = quoted(h.Run.Job) + " by " + h.Run.Replica + since(w, ", at ", h.Run.Began) + since(w, ", tick ", h.Run.Tick)
	case h.Past != nil:
		what = fmt.Sprintf("%s by %s: %s, took %s", quoted(h.Past.Job), h.Past.Replica, how(h.Past), h.Past.Took.String())
	case h.Skip != nil:
		what = fmt.Sprintf("%s: %s, the last %s: %s", quoted(h.Skip.Job), view.Counted(h.Skip.Count, "tick"), w.clock(h.Skip.Tick), whySkipped(h.Skip.Reason, h.Skip.By))
	case h.Term != nil:
		what = strings.TrimSpace(fmt.Sprintf("%d of %s: %s %s %s", h.Term.Term, quoted(h.Term.Election), h.Term.Identity, h.Term.Event, h.Term.Reason))
	case h.Order != nil:
		what = fmt.Sprintf("%s %s by %s: %s; %s", h.Order.Kind, quoted(cmp.Or(h.Order.Target, "all jobs")), h.Order.By, cmp.Or(h.Order.Result, "given"), h.Order.Why)
	case h.Error != "":
		what = h.Error
	}
	w.linef("%s %-7s %s", w.clock(h.Now), h.Event, what)
}
