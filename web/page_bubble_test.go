package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/web"
)

var pages = []string{"/", "/jobs", "/job?name=poll", "/runs", "/runs?name=poll", "/elections", "/nodes", "/orders"}

// What each page shows of a cluster that works, and the same as JSON.
func TestPagesShowTheCluster(t *testing.T) {
	inBubble(t, 5, []web.Option{web.WithTitle("billing")}, func(t *testing.T, w *world) {
		elected := []scheduler.Option{scheduler.WithElection("poller")}
		failing := job{"export", "*/20 * * * * *", func(context.Context) error { return errors.New("full") }}
		for _, identity := range []string{"a", "b", "c"} {
			w.replica(identity, elected, job{"poll", "*/10 * * * * *", takes(4 * time.Second)}, failing, job{"nightly", "0 0 3 * * 1-5", takes(0)})
		}
		w.get("/")
		time.Sleep(time.Minute) // with the page of somebody who looks now and then
		page := w.eventually("/", "election has a leader")
		sentence := textOf(element(page, `<p id="sentence"`, "</p>"))
		require.Regexp(t, `^5 of 5 nodes vote; 2 more may fail\. 1 election has a leader\. 1 job is failing\. No job is late\.$`, sentence)
		require.Contains(t, page, "<title>(1) billing: Overview</title>")
		require.Contains(t, textOf(element(page, `<section class="verdict"`, "</h1>")), "1 job needs someone")
		leader := attribute(element(page, `<li class="lane" data-election="poller"`, ">"), "data-leader")
		require.Contains(t, []string{"a", "b", "c"}, leader)
		todo := element(page, `<ul class="todo" id="todo"`, "</ul>")
		require.Contains(t, todo, `data-job="export"`)
		require.Contains(t, textOf(todo), "The last 3 runs failed")
		lanes := element(page, `id="lanes"`, "</section>")
		require.Regexp(t, `(?s)data-job="export".*<a href="run\?name=export&amp;token=\d+".*data-job="poll"`, lanes, "problems first, and a failure is a link")
		require.Contains(t, element(page, "No run and no tick in this time", "</p>"), ">nightly<")

		jobs := w.get("/jobs")
		require.Contains(t, textOf(jobs), "3 jobs")
		require.Contains(t, textOf(jobs), "0 0 3 * * 1-5")
		require.Contains(t, jobs, `aria-label="last 3 runs: 3 failed"`)
		require.NotContains(t, w.get("/jobs?q=POL"), `data-job="export"`)
		require.Contains(t, w.get("/jobs?q=POL"), `data-job="poll"`)
		require.Contains(t, w.get("/jobs?state=failing"), `data-job="export"`)
		require.NotContains(t, w.get("/jobs?state=failing"), `data-job="poll"`)
		require.Contains(t, w.get("/jobs?q=nothing"), "No job is like that")

		one := w.get("/job?name=poll")
		require.Contains(t, one, "<title>(1) billing: poll</title>")
		require.Contains(t, textOf(element(one, `<dl id="facts"`, "</dl>")), "the leader of poller")
		require.Contains(t, element(one, `<div id="timeline"`, "</section>"), `data-replica="`+leader+`"`)
		require.GreaterOrEqual(t, strings.Count(element(one, `<table id="runs"`, "</table>"), `data-outcome="ok"`), 5)

		elections := w.get("/elections")
		require.Contains(t, textOf(elections), leader+" leads since")
		require.Contains(t, textOf(elections), "Candidates: a, b, c")

		nodes := w.get("/nodes")
		require.Equal(t, 5, strings.Count(element(nodes, `<table id="nodes"`, "</table>"), `data-votes="true"`))
		require.Equal(t, 4*5, strings.Count(element(nodes, `<table id="matrix"`, "</table>"), `data-votes="true"`), "three replicas and this process")
		require.Contains(t, nodes, "Every replica sees these nodes as this page does.")
		require.Contains(t, element(nodes, `<table id="replicas"`, "</table>"), `data-replica="c"`)

		require.Contains(t, w.get("/orders"), `id="empty-orders"`)
		for _, path := range append(pages, "/jobs?state=late") {
			require.NotContains(t, w.get(path), `id="problems"`, path)
			require.NotContains(t, w.get(path), "data-do=", "%s: nothing can be ordered", path)
		}

		for name, fields := range map[string][]string{
			"overview":      {"sentence", "quorum", "elections", "running", "late", "paused", "next", "now", "read", "problems"},
			"nodes":         {"nodes", "quorum", "now"},
			"replicas":      {"replicas", "read"},
			"elections":     {"elections"},
			"jobs":          {"jobs", "total", "page", "pages", "matching"},
			"job?name=poll": {"name", "job", "runs", "skips", "error"},
			"runs":          {"name", "matching", "page", "pages", "runs", "error", "sentence"},
			"orders":        {"orders"},
			"":              {"documents", "actions"},
		} {
			var doc map[string]json.RawMessage
			text := w.get("/api/v1/" + name)
			require.NoError(t, json.Unmarshal([]byte(text), &doc), name)
			require.NotContains(t, text, `:""`, name)
			for _, field := range fields {
				require.Contains(t, doc, field, name)
			}
		}
	})
}

var (
	inTags        = regexp.MustCompile(`<[a-z][^>]*\s(?:on[a-z]+|style)=[^>]*>|<style|<script[^>]*>[^<]+`)
	fromElsewhere = regexp.MustCompile(`(?:src|href|action)="(?:https?:)?//`)
	rooted        = regexp.MustCompile(`(?:src|href|action)="/`)
)

// Pages have nothing that their policy would not let in, nothing from elsewhere, and links that are
// right under any prefix.
func TestPagesKeepTheirPolicy(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(as("ann"))}, func(t *testing.T, w *world) {
		w.replica("a", []scheduler.Option{scheduler.WithElection("poller")}, job{"poll", "*/10 * * * * *", takes(4 * time.Second)})
		w.eventually("/", "election has a leader")
		for _, path := range append(pages, "/order?kind=pause&job=poll", "/order?kind=resign&election=poller", "/order?kind=pause&all=1", "/nothing", "/a/b/c") {
			answer := w.serve(httptest.NewRequest(http.MethodGet, path, nil))
			page := answer.Body.String()
			require.Empty(t, inTags.FindString(withoutValues(page)), path)
			require.Equal(t, 1, strings.Count(page, "<script"), path)
			require.Contains(t, page, `<script src="`, path)
			require.NotContains(t, page, "%!", "%s: a verb without its argument", path)
			require.Empty(t, fromElsewhere.FindString(page), path)
			require.Empty(t, rooted.FindString(page), path)
			policy := answer.Header().Get("Content-Security-Policy")
			require.Contains(t, policy, "default-src 'none'")
			require.Contains(t, policy, "frame-ancestors 'none'")
			require.NotContains(t, policy, "unsafe")
			require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
			require.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
			require.Equal(t, "same-origin", answer.Header().Get("Referrer-Policy"))
		}
		require.Contains(t, w.serve(httptest.NewRequest(http.MethodGet, "/a/b/c", nil)).Body.String(), `href="./../../assets/app.css`)
	})
}

// Where the jobs take long to read they are read seldom. A page that is open meanwhile waits for no
// read: only the first one does.
func TestPageWaitsForNoRead(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		var jobs []job
		for i := range 20 {
			jobs = append(jobs, job{fmt.Sprint("nightly", i), "0 0 3 * * *", takes(0)})
		}
		w.replica("a", nil, jobs...)
		for _, n := range w.fleet.Nodes() {
			n.SetDelay(95 * time.Millisecond)
		}
		w.eventually("/jobs", "nightly")
		for range 2 * 15 {
			asked := time.Now()
			w.get("/jobs")
			require.Zero(t, time.Since(asked))
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(time.Minute) // nobody looks
		asked := time.Now()
		w.get("/jobs")
		require.NotZero(t, time.Since(asked))
	})
}

// Who has an empty cluster before them reads what to do.
func TestEmptyClusterSaysWhatToDo(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		w.replica("a", nil, job{"poll", "*/10 * * * * *", takes(0)})
		time.Sleep(20 * time.Second)
		w.q = w.quorum("page", redlock.WithPrefix("another")) // a wrong prefix
		w.h = w.handler()
		page := w.eventually("/", "No replica tells of a job.")
		require.Contains(t, page, "redlock.WithPrefix")
		require.Contains(t, page, `id="empty-elections"`)
		require.Contains(t, w.get("/nodes"), `id="empty-replicas"`)
		require.Contains(t, w.get("/jobs"), `id="empty-jobs"`)
		require.Contains(t, w.get("/orders"), `id="empty-orders"`)
		require.Contains(t, w.get("/elections"), "elector.New")
	})
}

// within fails if a request takes longer than a second of the bubble's time.
func (w *world) within(path string) string {
	w.Helper()
	began := time.Now()
	page := w.get(path)
	require.LessOrEqual(w, time.Since(began), time.Second, path)
	return page
}

// A node that hangs is said within a second, and the page never hangs with it; nor with all of
// them, nor with a Quorum that was closed.
func TestNodesThatHang(t *testing.T) {
	inBubble(t, 5, nil, func(t *testing.T, w *world) {
		w.replica("a", []scheduler.Option{scheduler.WithElection("poller")}, job{"poll", "*/10 * * * * *", takes(time.Second)})
		w.get("/")
		time.Sleep(20 * time.Second)
		require.Contains(t, w.within("/"), "5 of 5 nodes vote")
		require.NoError(t, w.fleet.Node(1).Freeze())
		time.Sleep(time.Second)
		require.Contains(t, w.within("/"), "4 of 5 nodes vote; 1 more may fail.")
		nodes := w.within("/nodes")
		require.Equal(t, 1, strings.Count(element(nodes, `<table id="nodes"`, "</table>"), `data-votes="false"`))
		require.Contains(t, element(nodes, `<table id="nodes"`, "</table>"), ">silent<")

		require.NoError(t, errors.Join(w.fleet.Node(0).Freeze(), w.fleet.Node(2).Freeze()))
		w.eventually("/elections", "It is not known who leads")
		w.eventually("/", "nothing is granted since ")
		w.freeze()
		time.Sleep(time.Second)
		page := w.within("/")
		require.Contains(t, page, "0 of 5 nodes vote, and 3 are needed: nothing is granted since ")
		require.Contains(t, page, "and whether its address is right.")
		time.Sleep(20 * time.Second)
		for _, path := range pages {
			page = w.within(path)
			require.Contains(t, page, `id="problems"`, path)
		}
		jobs := w.within("/jobs")
		require.Contains(t, jobs, `data-job="poll"`, "what was known is shown")
		require.Regexp(t, `The jobs are shown as they were \d+ s ago`, textOf(jobs))

		// One that has never read anything, and gives nodes more time than a page takes.
		w.q = w.quorum("patient", redlock.WithTTL(8*time.Second), redlock.WithNodeTimeout(1900*time.Millisecond))
		w.h = w.handler()
		began := time.Now()
		page = w.get("/jobs")
		require.LessOrEqual(t, time.Since(began), 800*time.Millisecond)
		require.Contains(t, page, "The jobs have not been read yet")
		require.NotContains(t, page, "No replica tells", "that is not known")
		began = time.Now()
		for range 5 {
			w.get("/jobs")
		}
		require.LessOrEqual(t, time.Since(began), time.Second, "one has waited in vain, and the others need not")
	})
}

// A Quorum that was closed is said, and a Handler that was.
func TestClosed(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		w.get("/")
		require.NoError(t, w.q.Close())
		time.Sleep(time.Second)
		require.Contains(t, w.within("/"), "has closed its connections to the nodes")
		w.h = w.handler()
		require.Contains(t, w.within("/"), "has closed its connections to the nodes")
		require.NoError(t, errors.Join(w.h.Close(), w.h.Close()), "also again")
		answer := w.serve(httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, http.StatusServiceUnavailable, answer.Code)
		require.Contains(t, answer.Body.String(), "The page was closed")
	})
}

// Nobody looks, nothing is asked.
func TestNothingIsReadForNobody(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		w.get("/")
		inAMinute := func() int {
			before := w.fleet.Node(0).Commands()
			time.Sleep(time.Minute)
			return w.fleet.Node(0).Commands() - before
		}
		time.Sleep(2 * time.Minute)
		resting := inAMinute()
		w.get("/")
		time.Sleep(5 * time.Second)
		looked := w.fleet.Node(0).Commands()
		for range 50 {
			w.get("/")
		}
		time.Sleep(time.Second)
		fifty := w.fleet.Node(0).Commands() - looked
		w.get("/")
		looked = w.fleet.Node(0).Commands()
		time.Sleep(time.Second)
		one := w.fleet.Node(0).Commands() - looked
		require.NoError(t, w.h.Close())
		// The process's own looks at a node go on, some 120 a minute at times that vary; reading
		// for a page would more than double them.
		require.LessOrEqual(t, resting, inAMinute()*5/4)
		require.LessOrEqual(t, fifty, one+10, "of fifty pages in a second, and of one")
		require.Positive(t, one)
	})
}

var hostile = []string{
	"plain", "a/b", "..", ".", "../../etc/passwd", "/", "//evil.example/x", "a?b=c&d#e", "%2e%2e%2f", "a+b c", " leading", "trailing ",
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'onmouseover='alert(1)`, `{{.Secret}}`, `{a}`, "`${1}`", "javascript:alert(1)", `\`, "\\u003cscript\\u003e",
	"\u202egnp.exe", "a\u200bb", "\u3164", "\u2800", "\u200d", "\u2066x\u2069", "שלום", "名前", "🙂👩\u200d🚀", "a\x00b", "a\nb\r\n\tc", "\x1b[31mred", "\u0085", "e\u0301", "]]>", "<!--", "&lt;&amp;", "</title>", "%00", "%",
	strings.Repeat("x", 1000), strings.Repeat("ü", 500), strings.Repeat("<", 200),
}

// Names of any characters are shown, change nothing around them, and their links lead to them.
func TestHostileNames(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(as("ann"))}, func(t *testing.T, w *world) {
		w.eventually("/", "3 of 3 nodes vote")
		board := board.Of(w.q)
		var cards []bulletin.Card
		for _, name := range hostile {
			card, ok := bulletin.Job{Job: name, Key: "job/" + name, Schedule: name, Zone: name, Program: name, Election: name, Delivery: name, By: name, Orders: true}.Card()
			require.True(t, ok, "%q", name)
			cards = append(cards, card)
			for _, e := range []func() (bulletin.Entry, bool){
				func() (bulletin.Entry, bool) {
					return bulletin.Run{Job: name, By: name, Tick: 1e12, Began: 1e12, Outcome: name, Error: name, Token: 7, Trace: name, Order: name}.Entry("job/" + name)
				},
				func() (bulletin.Entry, bool) {
					return bulletin.Skip{Job: name, By: name, Tick: 1e12, Reason: name, Holder: name}.Entry("job/"+name, 3)
				},
				func() (bulletin.Entry, bool) {
					return bulletin.Term{Term: 5, By: name, Event: bulletin.Elected, Reason: name, At: 1e12}.Entry(name)
				},
				func() (bulletin.Entry, bool) {
					return bulletin.Order{ID: "id", Kind: name, Target: name, By: name, Why: name, Result: name, Detail: name}.Entry()
				},
			} {
				entry, ok := e()
				require.True(t, ok, "%q", name)
				require.NoError(t, board.Post(t.Context(), nil, entry), "%q", name)
			}
			text, err := json.Marshal(map[string]any{
				"v": 1, "identity": name, "host": name, "program": name, "version": name, "jobs": []string{name}, "nodes": []map[string]any{{"node": name, "why": name}},
				"elections": []map[string]any{{"election": name, "identity": name}}, "running": []map[string]any{{"job": name, "by": name, "token": 7}},
			})
			require.NoError(t, err)
			if len(text) <= bulletin.MaxCardText {
				cards = append(cards, bulletin.Card{Kind: bulletin.Processes, ID: name, Text: string(text), Lifetime: time.Hour})
			}
		}
		for _, c := range cards {
			require.NoError(t, board.Post(t.Context(), []bulletin.Card{c}))
		}
		w.eventually("/jobs", "plain")
		w.get("/elections")
		time.Sleep(5 * time.Second)
		for _, path := range []string{"/", "/jobs", "/jobs?q=" + url.QueryEscape(hostile[12]), "/elections", "/nodes", "/orders"} {
			checkInert(t, path, w.get(path))
		}
		found := make(map[string]bool)
		for _, link := range links(w.get("/jobs")) {
			query, isJob := strings.CutPrefix(link, "job?")
			if !isJob {
				continue
			}
			values, err := url.ParseQuery(query)
			require.NoError(t, err)
			page := w.get("/" + link)
			checkInert(t, link, page)
			if name := values.Get("name"); attribute(element(page, `<dl id="facts"`, ">"), "data-job") == strings.ReplaceAll(strings.ReplaceAll(name, "\x00", "\uFFFD"), "\r\n", "\r\n") {
				found[name] = true
			}
			order := w.get("/order?" + url.Values{"kind": {"pause"}, "job": {values.Get("name")}}.Encode())
			checkInert(t, "order", order)
		}
		for _, name := range hostile {
			require.True(t, found[name], "%q", name)
		}
		var doc struct {
			Jobs []struct {
				Name string `json:"name"`
			} `json:"jobs"`
		}
		require.NoError(t, json.Unmarshal([]byte(w.get("/api/v1/jobs")), &doc))
		require.Len(t, doc.Jobs, len(hostile))
		for _, j := range doc.Jobs {
			require.Contains(t, hostile, j.Name)
		}
	})
}

// checkInert fails if a page has an element or an attribute that this package has not written, or
// characters that turn what is around them outside of attributes.
func checkInert(t *testing.T, path, page string) {
	t.Helper()
	require.Empty(t, inTags.FindString(withoutValues(page)), path)
	require.Equal(t, 1, strings.Count(page, "<script"), path)
	require.NotContains(t, page, "<img", path)
	require.NotContains(t, page, "<!--", path)
	require.NotContains(t, page, "%!", "%s: a verb without its argument", path)
	require.NotContains(t, strings.ToLower(page), `href="javascript`, path)
	text := tags.ReplaceAllString(page, "")
	require.NotContains(t, text, "\u202e", path)
	require.NotContains(t, text, "\x1b", path)
	require.Equal(t, 1, strings.Count(element(page, "<head>", "</head>"), "</title>"), path)
}

var values = regexp.MustCompile(`="[^"]*"`)

// withoutValues is a page whose attributes have none.
func withoutValues(page string) string { return values.ReplaceAllString(page, `=""`) }
