package page

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/examples/internal/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func handler(t *testing.T) http.Handler {
	t.Helper()
	d := demo.New(demo.Config{Where: demo.Processes, Replicas: 1, Hosts: []string{"one", "two", "three"}})
	t.Cleanup(d.Close)
	return Handler(d)
}

func ask(h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:8080"+target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestPage(t *testing.T) {
	h := handler(t)
	for path, kind := range map[string]string{
		"/": "text/html", "/demo.css": "text/css", "/demo.js": "text/javascript", "/icon.svg": "image/svg+xml", "/state": "application/json",
	} {
		w := ask(h, "GET", path, "")
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Header().Get("Content-Type"), kind)
		require.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
	require.Equal(t, http.StatusNotFound, ask(h, "GET", "/page.go", "").Code)
	require.Equal(t, http.StatusMethodNotAllowed, ask(h, "GET", "/orders", "").Code)
}

// The policy forbids scripts and styles inside of the page: there are none.
func TestPageObeysItsPolicy(t *testing.T) {
	text := ask(handler(t), "GET", "/", "").Body.String()
	require.NotRegexp(t, regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:\s+defer)?>|javascript:|https?://`), text)
}

// A name that an attacker has made lead here is refused: what it is said to be counts.
func TestHost(t *testing.T) {
	h := handler(t)
	for host, status := range map[string]int{
		"localhost:8080": 200, "localhost": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "[::1]": 200, "192.0.2.7:80": 200,
		"evil.example:8080": 421, "localhost.evil.example": 421, "": 421, "127.0.0.1.evil.example:8080": 421,
	} {
		require.Equal(t, status, ask(h, "GET", "/state", "", "Host", host).Code, host)
	}
}

func TestOrders(t *testing.T) {
	h := handler(t)
	post := func(body string, headers ...string) (int, string) {
		w := ask(h, "POST", "/orders", body, append([]string{"Content-Type", "application/json"}, headers...)...)
		var a answer
		if w.Code != http.StatusForbidden {
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a), w.Body.String())
		}
		return w.Code, a.Text + a.Error
	}
	for _, tc := range []struct {
		body, text string
		status     int
	}{
		{`{"do":"partition","replica":"a"}`, "done", 200},
		{`{"do":"partition","replica":"a"}`, "refused: nothing is changed by that", 409},
		{`{"do":"kill","replica":"a"}`, "refused: a is not running", 409},
		{`{"do":"explode"}`, `there is no order "explode" here`, 400},
		{`{"do":"kill","replica":"` + strings.Repeat("a", maxOrder) + `"}`, "that is no order: http: request body too large", 400},
		{`{"do":"kill","colour":"red"}`, `that is no order: json: unknown field "colour"`, 400},
		{`kill`, "that is no order: invalid character 'k' looking for beginning of value", 400},
	} {
		status, text := post(tc.body)
		require.Equal(t, tc.status, status, text)
		require.Equal(t, tc.text, text)
	}
	status, _ := post(`{"do":"heal","replica":"a"}`, "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, status)
	status, _ = post(`{"do":"heal","replica":"a"}`, "Origin", "http://evil.example")
	require.Equal(t, http.StatusForbidden, status)
	w := ask(h, "POST", "/orders", `{"do":"heal","replica":"a"}`, "Content-Type", "text/plain")
	require.Equal(t, http.StatusUnsupportedMediaType, w.Code, "a form of another page can send that")
	require.Contains(t, ask(h, "GET", "/state", "").Body.String(), `"cut":[1,2,3]`, "nothing was healed")
}

func TestEvents(t *testing.T) {
	server := httptest.NewServer(handler(t))
	defer server.Close()
	open := func() *http.Response {
		r, err := http.Get(server.URL + "/events")
		require.NoError(t, err)
		return r
	}
	var streams []*http.Response
	for range maxStreams {
		streams = append(streams, open())
	}
	last := open()
	require.Equal(t, http.StatusServiceUnavailable, last.StatusCode)
	require.NoError(t, last.Body.Close())

	first := bufio.NewScanner(streams[0].Body)
	message := func(contains string) {
		for first.Scan() {
			if line := first.Text(); strings.HasPrefix(line, "data: ") && strings.Contains(line, contains) {
				return
			}
		}
		t.Fatalf("the stream ends without %s", contains)
	}
	message(`"type":"state"`)
	r, err := http.Post(server.URL+"/orders", "application/json", strings.NewReader(`{"do":"partition","node":2}`))
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	message(`"cut":[2]`)
	message("PARTITION between every replica and node 2")
	for _, s := range streams {
		require.NoError(t, s.Body.Close())
	}
	http.DefaultClient.CloseIdleConnections()
}
