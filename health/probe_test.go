package health_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/health"
)

// probe asks as a kubelet does.
func probe(h http.Handler, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

// told is the JSON of an answer.
type told struct {
	Check  string
	OK     bool
	Reason string
	Parts  []struct {
		Name, State, Reason string
		Voting, Needed      *int
		Nodes               []struct{ Node, Reason, Until string }
	}
}

// verbose is what ?verbose says; its status agrees with it.
func verbose(t *testing.T, h http.Handler, check string) told {
	t.Helper()
	w := probe(h, check+"?verbose")
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var is told
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &is), w.Body)
	require.Equal(t, check, "/"+is.Check)
	require.Equal(t, is.OK, w.Code == http.StatusOK)
	return is
}

// states is how the parts are, by their names.
func (is *told) states() map[string]string {
	states := make(map[string]string)
	for _, p := range is.Parts {
		states[p.Name] = p.State
		if p.Reason != "" {
			states[p.Name] += ": " + p.Reason
		}
	}
	return states
}

func requireReady(t *testing.T, h http.Handler) {
	t.Helper()
	w := probe(h, "/readyz")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Equal(t, "ok\n", w.Body.String())
	requireLive(t, h)
}

func requireNotReady(t *testing.T, h http.Handler, text string) {
	t.Helper()
	w := probe(h, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body)
	require.Equal(t, text+"\nreadyz check failed\n", w.Body.String())
	requireLive(t, h)
}

func requireLive(t *testing.T, h http.Handler) {
	t.Helper()
	w := probe(h, "/livez")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
}

// part is a part that says what it is told to.
type part func() error

func (p part) Healthy() error { return p() }

var _ health.Part = part(nil)
