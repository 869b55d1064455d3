package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/view"
)

// resultDoc is the outcome of an order.
type resultDoc struct {
	Result string      `json:"result"` // done, refused, nobody, unknown or failed
	Text   string      `json:"text"`
	Order  string      `json:"order"` // its ID
	Run    *view.Run   `json:"run"`
	Paused *view.Pause `json:"paused"`
}

// The results.
const (
	resultDone    = "done"
	resultRefused = "refused" // a replica refused it, or it applied to nothing
	resultNobody  = "nobody"  // no replica took it, and none will
	resultUnknown = "unknown" // it may have been carried out
	resultFailed  = "failed"  // it was not given
)

// results are the answers of the page and of the API to each result.
var results = map[string]struct {
	status     int
	look, word markup
}{
	resultDone: {http.StatusOK, "ok", "Done"}, resultRefused: {http.StatusConflict, "failing", "Refused"}, resultNobody: {http.StatusConflict, "failing", "Not done"},
	resultUnknown: {http.StatusBadGateway, "none", "Not known"}, resultFailed: {http.StatusBadGateway, "failing", "Failed"},
}

// given is an order that was given. Its result is kept for a while, so that a form that is sent
// twice gives one order. An order that failed, or that no replica took, may be given again.
type given struct {
	order  order
	result *resultDoc
}

const mostGiven = 200

// stands reports whether an order must not be given again, because it was or may have been carried
// out.
func stands(g *made[given]) bool {
	return !g.ended() || g.is.result.Result != resultFailed && g.is.result.Result != resultNobody
}

// newOnce returns a random name for a form.
func newOnce() string { return rand.Text() }

// give gives an order. If the same form was sent before, give waits for the result of that order
// instead. The end of the request does not end the order; Close does. give returns nil, and gives
// nothing, if the once belongs to another order or actor, or if mostGiven orders are being given.
func (h *Handler) give(ctx context.Context, c *admin.Client, o order) *resultDoc {
	o.Once = cmp.Or(o.Once, newOnce())
	g, mine := h.given.begin(o.Once, given{order: o}, stands)
	switch {
	case g == nil || g.is.order != o:
		h.logger.WarnContext(ctx, "web: an order was not given", append(o.logged(), "by", o.By, "reason", "another one has the same once")...)
		return nil
	case !mine:
		select {
		case <-g.done:
			return g.is.result
		case <-ctx.Done():
			return &resultDoc{Result: resultUnknown, Text: "The order is being carried out."}
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(h.feed.down, cancel)()
	g.make(func(g *given) {
		g.result = &resultDoc{Result: resultUnknown, Text: "The order was interrupted."}
		h.logger.InfoContext(ctx, "web: order", append(o.logged(), "by", o.By)...) // it may panic too
		g.result = carryOut(ctx, c, o)
	})
	return g.is.result
}

// carryOut gives an order to the cluster.
func carryOut(ctx context.Context, c *admin.Client, o order) *resultDoc {
	target, it := admin.Job(o.Target), "The job"
	if o.Target == "" {
		target, it = admin.AllJobs, "Every job"
	}
	r := &resultDoc{Result: resultDone}
	var err error
	switch o.Kind {
	case admin.OrderPause:
		options := admin.PauseOptions{Reason: o.Reason}
		if o.For > 0 {
			options.Until = time.Now().Add(o.For)
		}
		var p admin.Paused
		if p, err = c.Pause(ctx, target, options); p.Since.IsZero() {
			break
		}
		r.Paused, r.Text = view.NewPause(p), it+" is paused: no replica begins a tick any more."
		for i, run := range p.Running {
			if i == 3 {
				r.Text += fmt.Sprintf(" And %d more.", len(p.Running)-i)
				break
			}
			r.Text += fmt.Sprintf(" A run of %s that had begun goes on, on %s.", inSentence(run.Job), inSentence(run.Replica))
		}
		if err != nil {
			r.Text += " " + errorText(err)
		}
		return r
	case admin.OrderResume:
		r.Text = "The pause of all jobs has ended. Jobs that are paused by themselves stay paused."
		if err = c.Resume(ctx, target, o.Reason); err != nil || o.Target == "" {
			break
		}
		r.Text = "The job is resumed: ticks that are due from now on are run, unless all jobs are paused."
		if p, err := c.Paused(ctx, target); err == nil {
			r.Paused = view.NewPause(p)
			r.Text = fmt.Sprintf("The job's own pause has ended. Its ticks are not run yet: there is a pause of %v, by %s.", p.Target, inSentence(p.By))
		}
	case admin.OrderRunNow:
		var started admin.Started
		if started, err = c.RunNow(ctx, o.Target, o.Reason); err != nil {
			break
		}
		r.Order, r.Run, r.Text = started.Order, view.NewRun(started.Run), inSentence(started.Run.Replica)+" has begun a run."
		if started.Paused != nil {
			r.Paused = view.NewPause(*started.Paused)
			r.Text += " The job is paused, and was run all the same."
		}
	case admin.OrderResign:
		r.Text, err = "The leader has stepped down.", c.Resign(ctx, o.Target, o.Reason)
	case admin.OrderCancel:
		r.Text, err = "The context of the run has ended. Its task may go on for a moment.", c.Cancel(ctx, admin.RunID{Job: o.Target, FencingToken: o.Token}, o.Reason)
	default:
		r.Result, r.Text = resultFailed, "There is no such order."
	}
	if err != nil {
		return failure(err)
	}
	return r
}

// failure returns the result for an error.
func failure(err error) *resultDoc {
	r := &resultDoc{Result: resultFailed, Text: errorText(err)}
	if told, is := errors.AsType[*admin.OrderError](err); is {
		r.Order = told.ID
	}
	switch {
	case errors.Is(err, admin.ErrUnknown):
		r.Result = resultUnknown
		r.Text += " It may have been done: look at the orders and the runs before you give it again."
	case errors.Is(err, admin.ErrNobody):
		r.Result = resultNobody
	case errors.Is(err, admin.ErrRefused), errors.Is(err, admin.ErrNotRunning), errors.Is(err, admin.ErrNotPaused), errors.Is(err, admin.ErrNoJob), errors.Is(err, elector.ErrNoLeader):
		r.Result = resultRefused
	}
	return r
}
