package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/web"
)

// as authorizes all orders, by one actor.
func as(who string) web.Authorize {
	return func(*http.Request, admin.Order) (string, error) { return who, nil }
}

// formOf reads the form of a page of an order, with what a browser would send.
func (w *world) formOf(path string) url.Values {
	w.Helper()
	page := w.get(path)
	form := element(page, `<form id="order"`, "</form>")
	require.NotEmpty(w, form, path)
	values := make(url.Values)
	for _, input := range strings.Split(form, "<input ")[1:] {
		input = " " + input
		values.Set(attribute(input, "name"), attribute(input, "value"))
	}
	return values
}

// give gives an order as a person without script does: from the page with the link, over the form,
// to the page that says what came of it.
func (w *world) give(from, kind, reason string) string {
	w.Helper()
	page := w.get(from)
	var link string
	for _, l := range links(page) {
		if values, err := url.ParseQuery(strings.TrimPrefix(l, "order?")); err == nil && values.Get("kind") == kind {
			link = l
			break
		}
	}
	require.NotEmpty(w, link, "no link to %s in %s", kind, page)
	form := w.formOf("/" + link)
	form.Set("reason", reason)
	answer := w.post("/order", form)
	require.Equal(w, http.StatusOK, answer.Code, answer.Body)
	return answer.Body.String()
}

// Every order, given without script, against real schedulers; and the journal that tells of them.
func TestOrders(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(as("ann"))}, func(t *testing.T, w *world) {
		task := takes(30 * time.Second)
		w.replica("a", []scheduler.Option{scheduler.WithElection("poller")}, job{"report", "0 0 3 * * *", task})
		w.replica("b", []scheduler.Option{scheduler.WithElection("poller")}, job{"report", "0 0 3 * * *", task})
		w.eventually("/jobs", `data-job="report"`)

		page := w.give("/job?name=report", "pause", "the database moves")
		require.Contains(t, page, `data-result="done"`)
		require.Contains(t, textOf(page), "The job is paused: no replica begins a tick")
		page = w.eventually("/", `id="wait"`)
		require.Contains(t, textOf(element(page, `<ul class="todo" id="wait"`, "</ul>")), "paused by ann: the database moves")

		page = w.give("/job?name=report", "run_now", "a customer waits")
		require.Contains(t, textOf(page), "has begun a run. The job is paused, and was run all the same.")
		w.eventually("/job?name=report", "Runs now")

		require.Contains(t, w.give("/", "resume", "moved"), `data-result="done"`)
		w.eventually("/", "No job is late.")
		w.eventually("/job?name=report", `data-do="pause"`)

		require.Contains(t, w.give("/job?name=report", "cancel", "wrong one"), `data-result="done"`)
		w.eventually("/job?name=report", `data-outcome="cancelled"`)

		term := attribute(element(w.get("/elections"), `<section class="election"`, ">"), "data-term")
		require.Contains(t, w.give("/elections", "resign", "replaced"), `data-result="done"`)
		page = w.eventually("/elections", ">resigned<")
		require.NotEqual(t, term, attribute(element(page, `<section class="election"`, ">"), "data-term"))

		page = w.give("/orders", "pause", "all must rest")
		require.Contains(t, textOf(page), "Every job is paused")
		require.Contains(t, w.eventually("/", "All jobs are paused by ann: all must rest."), `data-do="resume"`)

		page = w.eventually("/orders", `<q>all must rest</q>`) // each page says that they rest
		orders := element(page, `<table id="orders"`, "</table>")
		require.Equal(t, 6, strings.Count(orders, `data-result="done"`), orders)
		for _, why := range []string{"the database moves", "a customer waits", "moved", "wrong one", "replaced"} {
			require.Contains(t, orders, why)
		}
		require.NotContains(t, textOf(orders), "page", "each is given by ann")
		require.Equal(t, 6, strings.Count(w.log.String(), `msg="web: order"`))
		require.Contains(t, w.log.String(), `order=pause for=report why="the database moves" by=ann`)
	})
}

// What is not an order of this page is refused, and does nothing.
func TestOrdersAreRefused(t *testing.T) {
	var asked atomic.Int64
	authorize := func(r *http.Request, o admin.Order) (string, error) {
		asked.Add(1)
		if r.Header.Get("X-User") == "nobody" {
			return "", nil
		}
		return r.Header.Get("X-User"), errorUnless(r.Header.Get("X-User") != "")
	}
	inBubble(t, 3, []web.Option{web.WithActions(authorize)}, func(t *testing.T, w *world) {
		form := url.Values{"kind": {"pause"}, "job": {"report"}, "reason": {"why"}}
		user := func(r *http.Request) { r.Header.Set("X-User", "ann") }
		header := func(name, value string) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set(name, value) }
		}
		with := func(name, value string) url.Values {
			changed := make(url.Values)
			for k, v := range form {
				changed[k] = v
			}
			changed.Set(name, value)
			return changed
		}
		for name, c := range map[string]struct {
			form   url.Values
			change []func(*http.Request)
			status int
			asked  int64
		}{
			"from another site":           {form, []func(*http.Request){user, header("Sec-Fetch-Site", "cross-site")}, http.StatusForbidden, 0},
			"from a neighbour":            {form, []func(*http.Request){user, header("Sec-Fetch-Site", "same-site")}, http.StatusForbidden, 0},
			"from another origin":         {form, []func(*http.Request){user, header("Sec-Fetch-Site", ""), header("Origin", "https://evil.example")}, http.StatusForbidden, 0},
			"from no origin":              {form, []func(*http.Request){user, header("Sec-Fetch-Site", ""), header("Origin", "null")}, http.StatusForbidden, 0},
			"not authorized":              {form, nil, http.StatusForbidden, 1},
			"by nobody":                   {form, []func(*http.Request){header("X-User", "nobody")}, http.StatusForbidden, 1},
			"as text":                     {form, []func(*http.Request){user, header("Content-Type", "text/plain")}, http.StatusUnsupportedMediaType, 0},
			"without a reason":            {with("reason", ""), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"with a blank reason":         {with("reason", " \t "), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"with a long reason":          {with("reason", strings.Repeat("x", 257)), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"with a reason of no UTF-8":   {with("reason", "\xff"), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"of no kind":                  {with("kind", "drop"), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"for nothing":                 {with("job", ""), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"for a name that is too long": {with("job", strings.Repeat("x", redlock.MaxKeyLength-3)), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"for a time that is none":     {with("for", "tomorrow"), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"for a time that is over":     {with("for", "-1h"), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"for ever":                    {with("for", "100000h"), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"to cancel no run":            {with("kind", "cancel"), []func(*http.Request){user}, http.StatusBadRequest, 0},
			"of a huge form":              {with("more", strings.Repeat("x", 40_000)), []func(*http.Request){user}, http.StatusRequestEntityTooLarge, 0},
		} {
			for _, path := range []string{"/order", "/api/v1/orders"} {
				before := asked.Load()
				answer := w.post(path, c.form, c.change...)
				require.Equal(t, c.status, answer.Code, "%s: %s", name, answer.Body)
				require.Equal(t, c.asked, asked.Load()-before, name)
			}
		}
		require.Contains(t, w.log.String(), "an order from another site was refused")
		require.Contains(t, w.log.String(), "an order was not authorized")
		require.NotContains(t, w.post("/order", form).Body.String(), "secret", "the error is the log's")
		answer := w.post("/order", with("reason", ""), user)
		require.Contains(t, answer.Body.String(), `id="error"`)
		require.Contains(t, answer.Body.String(), `name="job" value="report"`, "the form is there again")
		for _, path := range []string{"/order?kind=pause&job=report&reason=x", "/order?kind=run_now&job=report"} {
			w.get(path) // does nothing
		}
		for _, path := range []string{"/", "/jobs", "/events", "/assets/app.js"} {
			answer := w.post(path, form, user)
			require.Equal(t, http.StatusMethodNotAllowed, answer.Code, path)
			require.Equal(t, "GET, HEAD", answer.Header().Get("Allow"))
		}
		time.Sleep(10 * time.Second)
		require.Contains(t, w.eventually("/orders", "</main>"), `id="empty-orders"`, "nothing was done")
	})
}

func errorUnless(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("secret: no session")
}

// Without WithActions there are no orders.
func TestReadOnly(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		form := url.Values{"kind": {"pause"}, "job": {"report"}, "reason": {"why"}}
		for _, path := range []string{"/order", "/api/v1/orders"} {
			require.Equal(t, http.StatusNotFound, w.post(path, form).Code)
		}
		require.Equal(t, http.StatusNotFound, w.serve(httptest.NewRequest(http.MethodGet, "/order?kind=pause&job=x", nil)).Code)
		require.Contains(t, w.get("/"), "This page only shows")
	})
}

// A form that is sent twice, or ten times at once, gives one order.
func TestFormThatIsSentAgain(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(as("ann"))}, func(t *testing.T, w *world) {
		var runs atomic.Int64
		w.replica("a", nil, job{"report", "0 0 3 * * *", func(context.Context) error { runs.Add(1); return nil }})
		w.eventually("/jobs", `data-job="report"`)
		form := w.formOf("/order?kind=run_now&job=report")
		form.Set("reason", "twice")
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { require.Contains(t, w.post("/order", form).Body.String(), `data-result="done"`) })
		}
		all.Wait()
		require.Contains(t, w.post("/order", form).Body.String(), `data-result="done"`, "the browser's reload")
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 1, runs.Load())
	})
}

// Programs give orders by the API, and read from the status what came of them.
func TestOrdersByTheAPI(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(as("ann"))}, func(t *testing.T, w *world) {
		w.replica("a", nil, job{"report", "0 0 3 * * *", takes(time.Minute)})
		w.eventually("/jobs", `data-job="report"`)
		order := func(status int, pairs ...string) (doc struct {
			Result string `json:"result"`
			Text   string `json:"text"`
			Run    struct {
				Replica string `json:"replica"`
				Token   uint64 `json:"token"`
			} `json:"run"`
			Paused struct {
				Until time.Time `json:"until"`
				By    string    `json:"by"`
			} `json:"paused"`
		}) {
			t.Helper()
			form := url.Values{"reason": {"why"}}
			for i := 0; i < len(pairs); i += 2 {
				form.Set(pairs[i], pairs[i+1])
			}
			answer := w.post("/api/v1/orders", form, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }) // no browser
			require.Equal(t, status, answer.Code, answer.Body)
			require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &doc))
			return doc
		}
		paused := order(http.StatusOK, "kind", "pause", "job", "report", "for", "15m")
		require.Equal(t, "done", paused.Result)
		require.Equal(t, "ann", paused.Paused.By)
		require.InDelta(t, 15*time.Minute, time.Until(paused.Paused.Until), float64(time.Minute))
		run := order(http.StatusOK, "kind", "run_now", "job", "report")
		require.Equal(t, "a", run.Run.Replica)
		again := order(http.StatusConflict, "kind", "run_now", "job", "report")
		require.Equal(t, "refused", again.Result)
		require.Contains(t, again.Text, "overlap")
		require.Equal(t, "nobody", order(http.StatusConflict, "kind", "run_now", "job", "unheard-of").Result)
		require.Equal(t, "refused", order(http.StatusConflict, "kind", "resign", "election", "none").Result)
		require.Equal(t, "refused", order(http.StatusConflict, "kind", "cancel", "job", "report", "token", "5").Result)
		for i := range 3 {
			require.NoError(t, w.fleet.Node(i).Freeze())
		}
		time.Sleep(5 * time.Second)
		require.Equal(t, "failed", order(http.StatusBadGateway, "kind", "pause", "job", "report").Result)
		for i := range 3 {
			require.NoError(t, w.fleet.Node(i).Thaw())
		}
	})
}

// A job that was resumed while all jobs are paused was said to be run from now on.
func TestResumeWhileAllArePaused(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(asUser)}, func(t *testing.T, w *world) {
		var runs atomic.Int64
		w.replica("a", nil, job{"report", "* * * * * *", func(context.Context) error { runs.Add(1); return nil }})
		w.eventually("/jobs", `data-job="report"`)
		for user, target := range map[string][]string{"ann": {"all", "1"}, "bob": {"job", "report"}} {
			status, _, _ := w.ordered(user, append(target, "kind", "pause")...)
			require.Equal(t, http.StatusOK, status)
		}
		before := runs.Load()
		answer := w.post("/api/v1/orders", url.Values{"kind": {"resume"}, "job": {"report"}, "reason": {"why"}}, func(r *http.Request) { r.Header.Set("X-User", "bob") })
		require.Equal(t, http.StatusOK, answer.Code)
		require.Contains(t, answer.Body.String(), "Its ticks are not run yet: there is a pause of all jobs, by ann.")
		require.Contains(t, answer.Body.String(), `"paused":{"all":true`)
		time.Sleep(5 * time.Second)
		require.Equal(t, before, runs.Load())
		status, _, text := w.ordered("bob", "kind", "resume", "all", "1")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, text, "The pause of all jobs has ended.")
		status, _, text = w.ordered("bob", "kind", "resume", "job", "report")
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, text, `not paused: job "report"`)
		time.Sleep(5 * time.Second)
		require.Greater(t, runs.Load(), before)
		time.AfterFunc(300*time.Millisecond, w.freeze) // it stands, and is not read back
		_, result, text := w.ordered("ann", "kind", "pause", "job", "report")
		require.Equal(t, "done", result, text)
	})
}

// A resume of what is not paused was answered as one that had ended a pause. One that is sent twice
// is answered as it was the first time.
func TestResumeWithoutAPause(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(asUser)}, func(t *testing.T, w *world) {
		w.replica("a", nil, job{"report", "0 0 3 * * *", takes(0)})
		w.eventually("/jobs", `data-job="report"`)
		one, all := []string{"job", "report"}, []string{"all", "1"}
		give := func(kind string, target []string, once string, want int, result, says string) {
			t.Helper()
			status, got, text := w.ordered("ann", append([]string{"kind", kind, "once", once}, target...)...)
			require.Equal(t, want, status, text)
			require.Equal(t, result, got, text)
			require.Contains(t, text, says)
		}
		const none = "not paused: "
		give("resume", one, "1", http.StatusConflict, "refused", none+`job "report"`)
		give("resume", all, "2", http.StatusConflict, "refused", none+"all jobs")

		give("pause", []string{"job", "repord"}, "0", http.StatusConflict, "refused", "no replica is known to have the job")
		give("pause", one, "3", http.StatusOK, "done", "The job is paused")
		give("resume", one, "1", http.StatusConflict, "refused", none)
		w.eventually("/api/v1/job?name=report", `"state":"paused"`)
		give("resume", all, "4", http.StatusConflict, "refused", none)
		for range 2 {
			give("resume", one, "5", http.StatusOK, "done", "ticks that are due from now on are run")
		}
		give("resume", one, "6", http.StatusConflict, "refused", none)

		give("pause", all, "7", http.StatusOK, "done", "Every job is paused")
		give("resume", one, "8", http.StatusConflict, "refused", none+`job "report" by itself: all jobs are, by ann`)
		for range 2 {
			give("resume", all, "9", http.StatusOK, "done", "The pause of all jobs has ended")
		}
	})
}
