package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/web"
)

// Jobs are asked for by each state that the page's filter has. That jobs are well was no state, and
// a state that there is not was answered with all jobs.
func TestJobsByState(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(asUser)}, func(t *testing.T, w *world) {
		failing := job{"export", "*/20 * * * * *", func(context.Context) error { return errors.New("full") }}
		w.replica("a", nil, job{"nightly", "0 0 3 * * *", takes(0)}, job{"report", "0 0 3 * * *", takes(0)}, failing)
		w.eventually("/jobs?state=failing", `data-job="export"`)
		status, _, _ := w.ordered("ann", "kind", "pause", "job", "report")
		require.Equal(t, http.StatusOK, status)
		w.eventually("/jobs?state=paused", `data-job="report"`)
		w.eventually("/jobs?state=ok", `data-job="nightly"`)
		for state, want := range map[string]string{
			"ok": "nightly", "failing": "export", "paused": "report", "running": "", "late": "", "unknown": "", "": "export nightly report",
		} {
			var doc struct{ Jobs []struct{ Name string } }
			require.NoError(t, json.Unmarshal([]byte(w.get("/api/v1/jobs?state="+state)), &doc))
			var names []string
			for _, j := range doc.Jobs {
				names = append(names, j.Name)
			}
			require.Equal(t, want, strings.Join(names, " "), state)
			if state != "" {
				require.Contains(t, w.get("/jobs?state="+state), `state=`+state+`" aria-current="true">`)
			}
		}
		for _, path := range []string{"/api/v1/jobs?state=nonsense", "/jobs?state=nonsense"} {
			answer := w.serve(httptest.NewRequest(http.MethodGet, path, nil))
			require.Equal(t, http.StatusBadRequest, answer.Code, path)
			require.Contains(t, answer.Body.String(), "There is no such state of jobs: state is empty, failing, late, running, paused, unknown, ok.")
		}
	})
}
