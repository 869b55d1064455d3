package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/web"
)

// Failures of all jobs are on one page, and all runs of a job on another, by outcome and time and
// in pages. Each run has an address.
func TestRunsHaveAddresses(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(as("ann")), web.WithTraceURL("https://traces.example/{trace_id}")}, func(t *testing.T, w *world) {
		fails := func(ctx context.Context) error {
			run, _ := scheduler.RunFromContext(ctx)
			run.Report("3 of 7 rows")
			return errors.New("full")
		}
		w.replica("a", []scheduler.Option{scheduler.WithTelling(scheduler.Telling{ErrorTexts: true})},
			job{"poll", "*/10 * * * * *", takes(0)}, job{"export", "*/30 * * * * *", fails}, job{"<b>", "0 * * * * *", fails})
		w.get("/")
		time.Sleep(10 * time.Minute)
		tells := func(r bulletin.Run) {
			r.Job, r.By, r.Began = "poll", "b", time.Now().Add(-2*time.Hour).UnixMilli()
			entries := r.Entries("job/poll")
			for i := range entries {
				entries[i].At = time.Now().Add(time.Duration(r.Token) * time.Second) // so that one is newer
			}
			require.NoError(t, board.Of(w.q).Post(t.Context(), nil, entries...))
		}
		tells(bulletin.Run{Outcome: bulletin.CutShort, Token: 7, Tick: 1e12, Attempt: 2})
		tells(bulletin.Run{Outcome: bulletin.Cancelled, Token: 8, Order: "an-order", Trace: "0af7651916cd43dd8448eb211c80319c"})
		rows := func(path string) (n int) {
			page := w.get(path)
			require.Equal(t, strings.Contains(page, `id="empty-runs"`), !strings.Contains(page, `<table id="runs"`), path)
			return strings.Count(page, "<tr data-token=")
		}
		failures := w.get("/runs")
		require.Equal(t, 31, rows("/runs"), "20, 10, and one that was cut short")
		require.Contains(t, failures, "&lt;b&gt;")
		require.Contains(t, failures, "3 of 7 rows")
		require.NotContains(t, failures, `data-outcome="ok"`)
		require.Equal(t, 30, rows("/runs?outcome=failed"))
		require.Equal(t, 1, rows("/runs?outcome=cut_short"))
		require.Equal(t, 0, rows("/runs?outcome=cut_short&since=1h"))
		require.Equal(t, 0, rows("/runs?outcome=ok"))
		require.Equal(t, 30, rows("/runs?since=1h"))
		require.Contains(t, failures, `cut short</span> <small class="soft">1</small>`)

		require.Equal(t, 50, rows("/runs?name=poll"))
		require.Equal(t, 12, rows("/runs?name=poll&page=2"), "60 and the two of another replica")
		require.Equal(t, 1, rows("/runs?name=poll&outcome=cancelled"))
		require.Contains(t, w.get("/runs?name=poll"), "Page 1 of 2")
		require.Contains(t, w.get("/runs?name=poll"), `href="runs?name=poll&amp;page=2"`)
		require.Contains(t, w.get("/job?name=poll"), `href="runs?name=poll"`)
		require.Equal(t, 0, rows("/runs?name=nothing"))
		require.Contains(t, failures, `<a href="./runs" aria-current="page">`)
		for _, path := range []string{"/runs?name=poll", "/run?name=poll&token=7", "/job?name=poll"} {
			require.Contains(t, w.get(path), `<a href="./jobs" aria-current="true">`, path)
			require.NotContains(t, w.get(path), `aria-current="page"`, path)
		}

		one := w.get("/run?name=poll&token=7")
		require.Contains(t, w.get("/runs?name=poll&page=2"), `href="run?name=poll&amp;token=7"`, "tokens say which run was the last")
		facts := textOf(element(one, `<main`, "</main>"))
		for _, fact := range []string{"cut short", "Its replica was killed", "Attempt2", "Token7", "Told by3 nodes"} {
			require.Contains(t, facts, fact)
		}
		require.Contains(t, one, `data-do="run_now"`)
		require.Contains(t, one, `href="run?name=poll&amp;token=8">The run after</a>`)
		require.Contains(t, w.get("/run?name=poll&token=8"), `href="https://traces.example/0af7651916cd43dd8448eb211c80319c"`)
		var doc struct {
			Name string `json:"name"`
			Run  struct{ Outcome, Report, Error string }
			Runs []struct{ Token uint64 }
		}
		require.NoError(t, json.Unmarshal([]byte(w.get("/api/v1/runs?name=export")), &doc))
		require.Len(t, doc.Runs, 20)
		require.NoError(t, json.Unmarshal([]byte(w.get(fmt.Sprint("/api/v1/run?name=export&token=", doc.Runs[3].Token))), &doc))
		require.Equal(t, []string{"export", "failed", "3 of 7 rows", "full"}, []string{doc.Name, doc.Run.Outcome, doc.Run.Report, doc.Run.Error})
		for path, status := range map[string]int{
			"/run?name=poll&token=9": 404, "/run?name=poll&token=x": 404, "/run?token=7": 404, "/runs?since=x": 400, "/runs?outcome=x": 400, "/runs?outcome=not_begun": 200, "/api/v1/runs?since=-1h": 400, "/runs?name=" + url.QueryEscape("<b>"): 200,
		} {
			require.Equal(t, status, w.serve(httptest.NewRequest(http.MethodGet, path, nil)).Code, path)
		}
		for i := range 3 {
			require.NoError(t, w.fleet.Node(i).Freeze())
		}
		time.Sleep(time.Minute)
		old := w.within("/runs")
		require.Contains(t, old, "Not as it is now")
		require.Contains(t, old, `data-token="7"`, "what was known is shown")
		require.Contains(t, w.within("/run?name=poll&token=7"), "Its replica was killed")
		require.Contains(t, w.within("/runs?name=unread"), "Not read yet.")
	})
}
