package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/web"
)

// freeze has no node answer.
func (w *world) freeze() {
	for _, n := range w.fleet.Nodes() {
		require.NoError(w, n.Freeze())
	}
	w.Cleanup(func() {
		for _, n := range w.fleet.Nodes() {
			_ = n.Thaw()
		}
	})
}

// The elections counted as read before a replica was that names one: the first page said that there
// are none.
func TestElectionsBeforeReplicas(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		w.replica("a", []scheduler.Option{scheduler.WithElection("poller")}, job{"poll", "0 0 3 * * *", takes(0)})
		w.eventually("/elections", `data-leader="a"`)
		for _, n := range w.fleet.Nodes() {
			n.SetDelay(2 * time.Millisecond)
		}
		w.h = w.handler()
		require.Contains(t, w.get("/api/v1/elections"), `"name":"poller"`)
		w.h = w.handler()
		require.Contains(t, w.get("/elections"), `data-election="poller"`)
		require.NotContains(t, w.get("/api/v1/nodes"), `"said":null`)
	})
}

// Where no node answers nothing is said of elections, but that they were not read, and why.
func TestElectionsWithoutANode(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		w.freeze()
		for range 2 {
			for _, path := range []string{"/", "/elections"} {
				page := w.get(path)
				require.Contains(t, page, "Not read yet.", path)
				require.NotContains(t, page, "No replica takes part", path)
			}
			time.Sleep(15 * time.Second)
		}
		var doc struct {
			Read map[string]struct {
				At    *time.Time
				Error string
			}
		}
		require.NoError(t, json.Unmarshal([]byte(w.get("/api/v1/elections")), &doc))
		require.Nil(t, doc.Read["elections"].At)
		require.Contains(t, doc.Read["elections"].Error, "which replicas live")
	})
}

// A job that could not be read was said to be run by any replica, and to have been told of in the
// year 1. What is not known is null.
func TestJobThatWasNotRead(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithActions(as("ann"))}, func(t *testing.T, w *world) {
		w.freeze()
		for range 2 {
			var doc map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(w.get("/api/v1/job?name=report")), &doc))
			for _, unknown := range []string{"job", "runs", "skips"} {
				require.Equal(t, "null", string(doc[unknown]), unknown)
			}
			require.Equal(t, `"report"`, string(doc["name"]))
			require.NotEmpty(t, doc["error"])
			page := textOf(w.get("/job?name=report"))
			for _, fact := range []string{"any replica", "take no orders", "Schedule", "Next tick", "0 nodes", "No run has ended", "None that an operator"} {
				require.NotContains(t, page, fact)
			}
			require.Contains(t, page, "Not read yet.")
			time.Sleep(10 * time.Second)
		}
	})
}

// That there is no such job was said also when that could not be read any more.
func TestJobThatMayHaveComeToBe(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		w.eventually("/", "3 of 3 nodes vote")
		status := func() int {
			return w.serve(httptest.NewRequest(http.MethodGet, "/api/v1/job?name=report", nil)).Code
		}
		require.Equal(t, http.StatusNotFound, status())
		w.freeze()
		time.Sleep(10 * time.Second)
		for range 3 {
			require.Equal(t, http.StatusOK, status(), "it is not known whether there is one")
			time.Sleep(3 * time.Second)
		}
	})
}

// All who look at a page at the same time get the same text. One who went away while it was made
// had the others read that the nodes had not answered.
func TestReaderWhoGoesAway(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		w.replica("a", nil, job{"report", "0 0 3 * * *", takes(0)})
		w.eventually("/jobs", `data-job="report"`)
		w.get("/job?name=report")
		for _, n := range w.fleet.Nodes() {
			n.SetDelay(50 * time.Millisecond)
		}
		for range 5 {
			time.Sleep(2 * time.Second) // the job is read anew
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Millisecond, cancel)
			w.serve(httptest.NewRequest(http.MethodGet, "/job?name=report", nil).WithContext(ctx))
			require.NotContains(t, w.get("/job?name=report"), "Not as it is now")
		}
	})
}

// What took long to read rested for nine times as long, also when the nodes were fast again: after
// a bad minute all was well for several more, whatever happened.
func TestJobsAfterASlowRead(t *testing.T) {
	inBubble(t, 3, nil, func(t *testing.T, w *world) {
		var jobs []job
		for i := range 60 {
			jobs = append(jobs, job{fmt.Sprint("customers/", i), "0 0 3 * * *", takes(0)})
		}
		w.replica("a", nil, jobs...)
		w.eventually("/jobs", "60 jobs")
		delay := func(d time.Duration) {
			for _, n := range w.fleet.Nodes() {
				n.SetDelay(d)
			}
		}
		delay(60 * time.Millisecond)
		for range 7 { // with the page of somebody who looks now and then
			time.Sleep(3 * time.Second)
			w.get("/jobs")
		}
		delay(0)
		for range 8 {
			time.Sleep(3 * time.Second)
			w.get("/jobs")
		}
		var doc struct {
			Read struct{ Jobs struct{ At time.Time } }
		}
		require.NoError(t, json.Unmarshal([]byte(w.get("/api/v1/jobs")), &doc))
		require.Less(t, time.Since(doc.Read.Jobs.At), 20*time.Second)
	})
}
