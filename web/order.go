package web

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// order is the content of a form.
type order struct {
	Kind   admin.OrderKind
	Target string        // a job or an election; empty for all jobs
	Token  uint64        // the run to cancel
	For    time.Duration // of a pause; zero for a pause without an end
	Reason string
	Once   string // forms with the same once give one order
	By     string // the actor, by Authorize
}

// orderKind describes a kind of order.
type orderKind struct {
	verb     string
	election bool // its target is an election
	all      bool // it may be for all jobs
	means    string
}

var orderKinds = map[admin.OrderKind]orderKind{
	admin.OrderPause:  {"Pause", false, true, "No replica begins a tick of it any more, whatever happens to replicas and nodes. A run that has begun goes on. Ticks that are due meanwhile are not caught up."},
	admin.OrderResume: {"Resume", false, true, "Ticks that are due from now on are run, unless all jobs are paused."},
	admin.OrderRunNow: {"Run now", false, false, "One replica begins one run now, at most. It takes no tick's place, and is run also if the job is paused."},
	admin.OrderResign: {"Resign", true, false, "The leader's term ends. When its work has returned another replica is elected, or the same one again. Runs of jobs are told to end, and may go on for a while."},
	admin.OrderCancel: {"Cancel", false, false, "The context of the run ends. The run counts as complete, and is not repeated."},
}

// wrong refuses a malformed form.
func wrong(text string) *refusal { return refused(http.StatusBadRequest, text) }

// parseTarget reads the kind and the target of an order, from a form or from the address of its
// form.
func parseTarget(v url.Values) (o order, no *refusal) {
	o.Kind, o.Once = admin.OrderKind(v.Get("kind")), v.Get("once")
	k, ok := orderKinds[o.Kind]
	if !ok {
		return o, wrong("There is no such order.")
	}
	field, prefix := "job", admin.KeyPrefix
	if k.election {
		field, prefix = "election", elector.KeyPrefix
	}
	if k.all && v.Get("all") != "" {
		return o, nil
	}
	if o.Target = v.Get(field); o.Target == "" || len(prefix+o.Target) > redlock.MaxKeyLength || !utf8.ValidString(o.Target) {
		o.Kind = "" // there is no form for it
		return o, wrong("The order names no job or election that can be.")
	}
	if o.Kind == admin.OrderCancel {
		var err error
		if o.Token, err = strconv.ParseUint(v.Get("token"), 10, 64); err != nil || o.Token == 0 {
			return o, wrong("The order names no run: token is no number.")
		}
	}
	return o, nil
}

// longestPause bounds a pause by a form, which has durations and no dates.
const longestPause = 366 * 24 * time.Hour

// parseOrder reads a form.
func parseOrder(v url.Values) (order, *refusal) {
	o, no := parseTarget(v)
	if no != nil {
		return o, no
	}
	o.Reason = strings.TrimSpace(v.Get("reason"))
	switch {
	case o.Reason == "":
		return o, wrong("Say why: those who look for the reason later have nothing else.")
	case len(o.Reason) > admin.MaxText || !utf8.ValidString(o.Reason):
		return o, wrong(fmt.Sprintf("The reason has %d bytes, and may have %d of UTF-8.", len(o.Reason), admin.MaxText))
	case len(o.Once) > 64:
		return o, wrong("The form is not one of this page.")
	}
	if text := v.Get("for"); text != "" && o.Kind == admin.OrderPause {
		if o.For, _ = time.ParseDuration(text); o.For <= 0 || o.For > longestPause {
			return o, wrong("The pause has no duration such as 15m or 4h.")
		}
	}
	return o, nil
}

// orderPage is the form of an order.
func (h *Handler) orderPage(w http.ResponseWriter, r *http.Request) *refusal {
	o, no := parseTarget(r.URL.Query())
	switch {
	case h.authorize == nil:
		return refused(http.StatusNotFound, readOnly)
	case no != nil:
		return no
	}
	h.form(w, r, http.StatusOK, o, "", nil)
	return nil
}

const readOnly = "Orders cannot be given here: the program serves this page without web.WithActions."

// form answers with the form of an order, or, if result is not nil, with the order's outcome.
func (h *Handler) form(w http.ResponseWriter, r *http.Request, status int, o order, failure string, result *resultDoc) {
	k := orderKinds[o.Kind]
	o.Once = newOnce()
	if o.Target == "" && o.Kind == admin.OrderResume {
		k.means = "It ends the pause of all jobs. Jobs that are paused by themselves stay paused."
	} else if o.Target == "" {
		k.means = strings.Replace(k.means, "a tick of it", "a tick of any job", 1)
	}
	f := &orderForm{order: o, Verb: k.verb, Means: k.means, Error: failure, Result: result}
	h.feed.want()
	s, _ := h.feed.peek()
	writeText(w, status, "text/html", h.render(&page{Kind: "order", Title: k.verb, Within: "orders", Status: h.status(s, nil), Doc: f}, r))
}

// longestForm bounds a form. Names and reasons are percent-encoded.
const longestForm = 32 << 10

// giveOrder gives the order of a form, and answers when the outcome is known.
func (h *Handler) giveOrder(w http.ResponseWriter, r *http.Request) *refusal {
	if h.authorize == nil {
		return refused(http.StatusNotFound, readOnly)
	}
	if err := h.origins.Check(r); err != nil {
		h.logger.WarnContext(r.Context(), "web: an order from another site was refused", "origin", view.Shortened(r.Header.Get("Origin"), 200), "error", err)
		return refused(http.StatusForbidden, "The order came from another site. Give it on this page; behind a proxy that changes the Host header, use web.WithTrustedOrigins.")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return refused(http.StatusUnsupportedMediaType, "An order is a form: application/x-www-form-urlencoded.")
	}
	r.Body = http.MaxBytesReader(w, r.Body, longestForm)
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		return refused(status, "The form cannot be read.")
	}
	o, no := parseOrder(r.PostForm)
	if no != nil {
		if isAPI(r) || orderKinds[o.Kind].verb == "" {
			return no
		}
		h.form(w, r, no.status, o, no.Text, nil)
		return nil
	}
	client, by, no := h.authorized(r, o)
	if no != nil {
		return no
	}
	// An answer to a browser may take longer than the server's WriteTimeout. If the deadline cannot
	// be set, the order is given all the same, and its outcome is in the journal.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerWithin))
	o.By = by
	result := h.give(r.Context(), client, o)
	if result == nil {
		return refused(http.StatusConflict, "This order was not given: its form, or what it has as once, stands for another order, or that of somebody else. Load the form again, or give it a once of its own.")
	}
	h.feed.news(o.Kind, o.Target)
	if isAPI(r) {
		writeJSON(w, results[result.Result].status, result)
	} else {
		h.form(w, r, http.StatusOK, o, "", result)
	}
	return nil
}

// answerWithin bounds the time of an answer to an order. admin.WithOrderTimeout may be an hour, but
// no browser waits that long.
const answerWithin = 5 * time.Minute

// authorized calls Authorize, and returns a Client that gives orders in the name of the actor.
func (h *Handler) authorized(r *http.Request, o order) (c *admin.Client, by string, no *refusal) {
	asked := admin.Order{Kind: o.Kind, Target: o.Target, Why: o.Reason}
	if o.Token != 0 {
		asked.Run = admin.RunID{Job: o.Target, FencingToken: o.Token}
	}
	who, err := h.authorize(r, asked)
	if err == nil { // As refuses an empty name
		c, err = h.feed.admin.As(strings.ToValidUTF8(view.Shortened(who, admin.MaxText/utf8.UTFMax), "?"))
	}
	if err != nil {
		h.logger.WarnContext(r.Context(), "web: an order was not authorized", append(o.logged(), "by", who, "error", err)...)
		return nil, "", refused(http.StatusForbidden, "You may not give this order. The log says why.")
	}
	return c, who, nil
}

// logged returns the attributes of an order for the log.
func (o order) logged() []any {
	return []any{"order", o.Kind, "for", visible(view.Shortened(o.Target, 200)), "why", visible(o.Reason)}
}

// news has the orders, and the target of this order, read soon.
func (f *feed) news(kind admin.OrderKind, target string) {
	f.loops[partOrders].hurry()
	switch {
	case kind == admin.OrderResign:
		f.loops[partElections].hurry()
	case target == "":
		f.loops[partJobs].hurry()
	default:
		f.touch(target)
	}
}

// orderForm is the page that confirms an order, or shows its outcome.
type orderForm struct {
	order
	Verb   string
	Means  string
	Error  string // why the form was refused
	Result *resultDoc
}

func (f *orderForm) draw(*page) markup {
	of, back := m("job %s", name(f.Target)), query("job", "name", f.Target)
	hidden := func(name markup, value string) markup {
		return m(`<input type="hidden" name="%s" value="%s">`, name, value)
	}
	fields, to := hidden("job", f.Target), m(`<a href="%s">To the job</a>`, back)
	switch {
	case f.Target == "":
		of, back, fields, to = "all jobs", "./", hidden("all", "1"), `<a href="jobs">To the jobs</a>`
	case f.Kind == admin.OrderResign:
		of, back, fields, to = "election "+name(f.Target), "elections", hidden("election", f.Target), `<a href="elections">To the elections</a>`
	}
	b := m(`<section class="verdict state-hold"><h1>%s: %s</h1>`+"\n", f.Verb, of)
	if r := f.Result; r != nil {
		is := results[r.Result]
		return b + m(`<p id="result" data-result="%s" role="status">%s <b>%s</b></p>
<p>%s · <a href="orders">To the orders</a></p></section>`, r.Result, st(is.look, is.word+"."), r.Text, to)
	}
	fields += hidden("kind", string(f.Kind)) + hidden("once", f.Once)
	if f.Token != 0 {
		fields += hidden("token", decimal(f.Token))
	}
	return b + m(`<p>%s</p>
%s<form id="order" method="post" action="order">
%s
<p><label for="reason">Reason</label> <input id="reason" name="reason" required maxlength="%d" value="%s" autocomplete="off" aria-describedby="why-reason"%s autofocus><span id="why-reason" class="sub">For those who ask later why this was done.</span></p>
%s<p class="acts"><button type="submit">%s</button> <a href="%s">Leave it</a></p>
<p class="sub">The answer takes up to ten seconds or so. The order is logged with your name.</p>
</form></section>`, f.Means, when(f.Error != "", `<p class="card note bad" id="error" role="alert">%s</p>`+"\n", f.Error), fields, admin.MaxText, f.Reason,
		when(f.Error != "", ` aria-invalid="true"`), when(f.Kind == admin.OrderPause, `<p><label for="for">Until</label> <select id="for" name="for"><option value="">it is resumed</option>`+
			`<option value="15m">in 15 minutes</option><option value="1h">in an hour</option><option value="4h">in 4 hours</option><option value="24h">in a day</option></select></p>`+"\n"), f.Verb, back)
}

type ordersDoc struct {
	Orders []view.Order `json:"orders"`
}

func (h *Handler) ordersDoc(_ context.Context, s *snapshot, _ *http.Request) any {
	return &ordersDoc{append([]view.Order{}, s.orders...)}
}

// resultLooks are the looks of the results of orders. Other results are failures.
var resultLooks = map[string]markup{"done": "ok", "taken": "running", "unknown": "none"}

func (d *ordersDoc) draw(p *page) markup {
	rows := each(d.Orders, "\n", func(o view.Order) markup {
		at, target := choice(o.At.IsZero(), o.Answered, o.At), jobLink(o.Target)
		switch {
		case o.Target == "":
			target = "all jobs"
		case o.Kind == string(admin.OrderResign):
			target = electionLink(o.Target)
		}
		result := choice(o.Result == "", st("none", "no answer"), st(either(resultLooks[o.Result], "failing"), escaped(words(o.Result))))
		details := escaped(words(o.Detail)) + when(o.TakenBy != "", ` <span class="sub">by %s</span>`, name(o.TakenBy))
		return m(`<tr id="order-%s" data-id="%s" data-kind="%s" data-result="%s">`, o.ID, o.ID, o.Kind, o.Result) +
			td("Given", m(`%s <span class="sub">%s</span>`, clock(at), ago(at))) + th("Who", name(o.By)) + td("What", escaped(words(o.Kind))) + td("Of", target) +
			cut("Why", m("<q>%s</q>", visible(o.Why))) + td("Came of it", result) + cut("Details", either(details, none)) + num("Nodes", o.Sources) + "</tr>"
	})
	told := table(` id="orders"`, "", rows, "Given", "Who", "What", "Of", "Why", "Came of it", "Details", ">Nodes")
	return m(`<div class="title"><h1>Orders</h1><span class="soft">a log, and no evidence: who gave an order is what its process said</span>%s</div>
`, when(p.Acts, `<span class="acts">%s</span>`, pauseAll+resumeAll)) + p.or(when(rows != "", "<section>%s</section>", told), partOrders,
		m(`<p class="card empty" id="empty-orders">No order was given in the last 40 days, here or with the command. %s</p>`, when(p.Acts, "Orders are on the pages of jobs and elections.")))
}
