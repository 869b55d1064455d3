package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/view"
)

// resultDoc is what came of an order.
type resultDoc struct {
	Result string      `json:"result"` // done, refused, nobody, unknown or failed
	Text   string      `json:"text"`
	Order  string      `json:"order"` // its id
	Run    *view.Run   `json:"run"`
	Paused *view.Pause `json:"paused"`
}

// The results.
const (
	resultDone    = "done"
	resultRefused = "refused" // by a replica, or there is nothing to do it to
	resultNobody  = "nobody"  // no replica took it, and none will
	resultUnknown = "unknown" // it may have been done
	resultFailed  = "failed"  // it was not given
)

func (r *resultDoc) status() int {
	switch r.Result {
	case resultDone:
		return http.StatusOK
	case resultRefused, resultNobody:
		return http.StatusConflict
	default:
		return http.StatusBadGateway
	}
}

// desk gives orders, and knows for a while what came of them: a form that is sent twice gives one
// order, unless that was not given.
type desk struct {
	logger *slog.Logger

	mu    sync.Mutex
	given []*given // guarded by mu; the oldest first; at most mostGiven
	open  int      // guarded by mu; orders under way
}

// given is an order that was given.
type given struct {
	order  order
	done   chan struct{}
	result *resultDoc // set before done is closed
}

// outcome is what came of it by now.
func (g *given) outcome() *resultDoc {
	select {
	case <-g.done:
		return g.result
	default:
		return &resultDoc{Result: resultUnknown, Text: "The order is being carried out. Load this page again."}
	}
}

// failed reports whether it is known that an order was not given, so that it may be given again.
func (g *given) failed() bool {
	is := g.outcome().Result
	return is == resultFailed || is == resultNobody
}

const (
	mostGiven = 200
	mostOpen  = 32
)

// newOnce makes a name for a form that nobody else has.
func newOnce() string { return rand.Text() }

// errManyOrders means that too many orders are under way.
var errManyOrders = errors.New("web: too many orders are under way")

// errAnotherOrder means that the once of an order stands for another one, or another actor's.
var errAnotherOrder = errors.New("web: an order of another kind, target, option, reason or actor has the same once")

// at is the place of the order with a once; below zero for none. It is called with mu held.
func (d *desk) at(once string) int {
	return slices.IndexFunc(d.given, func(g *given) bool { return g.order.Once == once })
}

// find returns an order that was given; nil for none.
func (d *desk) find(once string) *given {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.at(once); at >= 0 {
		return d.given[at]
	}
	return nil
}

// give gives an order, unless its form was sent before: then it waits for what comes of that. The
// order goes on if the request ends, and ends with down.
func (d *desk) give(ctx, down context.Context, c *admin.Client, o order) (id string, result *resultDoc, err error) {
	if o.Once == "" {
		o.Once = newOnce()
	}
	g, mine, err := d.begin(o)
	if err != nil {
		d.logger.WarnContext(ctx, "web: an order was not given", append(o.logged(), "by", o.By, "error", err)...)
		return "", nil, err
	}
	if !mine {
		select {
		case <-g.done:
			return o.Once, g.result, nil
		case <-ctx.Done():
			return o.Once, &resultDoc{Result: resultUnknown, Text: "The order is being carried out."}, nil
		}
	}
	d.logger.InfoContext(ctx, "web: order", append(o.logged(), "by", o.By)...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(down, cancel)()
	result = &resultDoc{Result: resultUnknown, Text: "The order was interrupted."}
	defer func() { // also if it panics
		d.mu.Lock()
		defer d.mu.Unlock()
		g.result = result
		d.open--
		close(g.done)
	}()
	result = carryOut(ctx, c, o)
	return o.Once, result, nil
}

// begin enters an order, unless it is there.
func (d *desk) begin(o order) (g *given, mine bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.at(o.Once)
	switch {
	case at >= 0 && !d.given[at].failed():
		if d.given[at].order != o {
			return nil, false, errAnotherOrder
		}
		return d.given[at], false, nil
	case d.open >= mostOpen:
		return nil, false, errManyOrders
	case at < 0 && len(d.given) >= mostGiven:
		at = 0
	}
	if at >= 0 {
		d.given = slices.Delete(d.given, at, at+1)
	}
	g = &given{order: o, done: make(chan struct{})}
	d.given = append(d.given, g)
	d.open++
	return g, true, nil
}

// carryOut gives an order to the cluster.
func carryOut(ctx context.Context, c *admin.Client, o order) *resultDoc {
	target, it := admin.Job(o.Job), "The job"
	if o.All {
		target, it = admin.AllJobs, "Every job"
	}
	switch o.Kind {
	case admin.OrderPause:
		options := admin.PauseOptions{Reason: o.Reason}
		if o.For > 0 {
			options.Until = time.Now().Add(o.For)
		}
		p, err := c.Pause(ctx, target, options)
		if p.Since.IsZero() {
			return failure(err)
		}
		r := &resultDoc{Result: resultDone, Paused: view.NewPause(p), Text: it + " is paused: no replica begins a tick any more."}
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
		if err := c.Resume(ctx, target, o.Reason); err != nil {
			return failure(err)
		}
		if o.All {
			return &resultDoc{Result: resultDone, Text: "The pause of all jobs has ended. Jobs that are paused by themselves stay paused."}
		}
		r := &resultDoc{Result: resultDone, Text: "The job is resumed: ticks that are due from now on are run, unless all jobs are paused."}
		if p, err := c.Paused(ctx, target); err == nil {
			r.Paused = view.NewPause(p)
			r.Text = fmt.Sprintf("The job's own pause has ended. Its ticks are not run yet: there is a pause of %v, by %s.", p.Target, inSentence(p.By))
		}
		return r
	case admin.OrderRunNow:
		started, err := c.RunNow(ctx, o.Job, o.Reason)
		if err != nil {
			return failure(err)
		}
		r := &resultDoc{Result: resultDone, Order: started.Order, Run: view.NewRun(started.Run), Text: inSentence(started.Run.Replica) + " has begun a run."}
		if started.Paused != nil {
			r.Paused = view.NewPause(*started.Paused)
			r.Text += " The job is paused, and was run all the same."
		}
		return r
	case admin.OrderResign:
		if err := c.Resign(ctx, o.Election, o.Reason); err != nil {
			return failure(err)
		}
		return &resultDoc{Result: resultDone, Text: "The leader has stepped down."}
	case admin.OrderCancel:
		if err := c.Cancel(ctx, admin.RunID{Job: o.Job, FencingToken: o.Token}, o.Reason); err != nil {
			return failure(err)
		}
		return &resultDoc{Result: resultDone, Text: "The context of the run has ended. Its task may go on for a moment."}
	}
	return &resultDoc{Result: resultFailed, Text: "There is no such order."}
}

// failure is the result of an error.
func failure(err error) *resultDoc {
	r := &resultDoc{Result: resultFailed, Text: errorText(err)}
	var told *admin.OrderError
	if errors.As(err, &told) {
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
