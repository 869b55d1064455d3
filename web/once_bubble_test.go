package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/web"
)

// asUser authorizes all orders, by the user that a header names.
func asUser(r *http.Request, _ admin.Order) (string, error) { return r.Header.Get("X-User"), nil }

// ordered gives an order by the API, and returns the status and what came of it.
func (w *world) ordered(user string, pairs ...string) (status int, result, text string) {
	w.Helper()
	form := url.Values{"reason": {"why"}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	answer := w.post("/api/v1/orders", form, func(r *http.Request) { r.Header.Set("X-User", user) })
	var doc struct{ Result, Text string }
	require.NoError(w, json.Unmarshal(answer.Body.Bytes(), &doc))
	return answer.Code, doc.Result, doc.Text
}

// An order whose once stands for another order, or for that of somebody else, was answered with
// what had come of the other one, as if it had been given.
func TestOnceOfAnotherOrder(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(asUser)}, func(t *testing.T, w *world) {
		w.replica("a", nil, job{"report", "0 0 3 * * *", takes(0)})
		w.eventually("/jobs", `data-job="report"`)
		pause := []string{"kind", "pause", "job", "report", "once", "k1"}
		for range 2 {
			status, result, _ := w.ordered("ann", pause...)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "done", result)
		}
		for name, other := range map[string][]string{
			"kind":   {"kind", "resume", "job", "report", "once", "k1"},
			"target": {"kind", "pause", "job", "another", "once", "k1"},
			"all":    {"kind", "pause", "all", "1", "once", "k1"},
			"option": {"kind", "pause", "job", "report", "for", "15m", "once", "k1"},
			"reason": {"kind", "pause", "job", "report", "reason", "another", "once", "k1"},
		} {
			status, result, text := w.ordered("ann", other...)
			require.Equal(t, http.StatusConflict, status, name)
			require.Empty(t, result, name)
			require.Contains(t, text, "This order was not given", name)
		}
		status, _, text := w.ordered("bob", pause...)
		require.Equal(t, http.StatusConflict, status, "of somebody else")
		require.Contains(t, text, "somebody else")
		require.Equal(t, 1, strings.Count(w.log.String(), `msg="web: order"`), "only what is given is logged as such")
		require.Equal(t, 6, strings.Count(w.log.String(), `msg="web: an order was not given"`))
		w.eventually("/api/v1/job?name=report", `"state":"paused"`)
		require.NotContains(t, w.get("/"), "All jobs are paused")
		status, _, _ = w.ordered("ann", "kind", "resume", "job", "report", "once", "k2")
		require.Equal(t, http.StatusOK, status)
	})
}

// An order that was not given stood for ever: once the nodes, or a replica, were back, the same
// form was answered with the failure.
func TestOnceOfAnOrderThatWasNotGiven(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(asUser)}, func(t *testing.T, w *world) {
		w.eventually("/", "3 of 3 nodes vote")
		run := []string{"kind", "run_now", "job", "report", "once", "k1"}
		_, result, _ := w.ordered("ann", run...)
		require.Equal(t, "nobody", result)
		w.replica("a", nil, job{"report", "0 0 3 * * *", takes(0)})
		w.eventually("/jobs", `data-job="report"`)
		for range 2 {
			status, result, _ := w.ordered("ann", run...)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "done", result)
		}
		time.Sleep(time.Second)
		w.eventually("/job?name=report", `data-outcome="ok"`)
		require.Equal(t, 1, strings.Count(w.get("/job?name=report"), `data-outcome="ok"`), "it was given once")

		pause := []string{"kind", "pause", "job", "report", "once", "k2"}
		for i := range 2 {
			require.NoError(t, w.fleet.Node(i).Freeze())
		}
		time.Sleep(5 * time.Second)
		status, result, _ := w.ordered("ann", pause...)
		require.Equal(t, http.StatusBadGateway, status)
		require.Equal(t, "failed", result)
		for i := range 2 {
			require.NoError(t, w.fleet.Node(i).Thaw())
		}
		w.eventually("/", "3 of 3 nodes vote")
		status, result, _ = w.ordered("ann", pause...)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "done", result)
		w.eventually("/api/v1/job?name=report", `"state":"paused"`)
	})
}
