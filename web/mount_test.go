package web_test

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/web"
)

// mounted has a server with pages of a process without nodes that answer: they are of no
// importance here.
func mounted(t *testing.T, prefix string, opts ...web.Option) *httptest.Server {
	fleet := redlocktest.Start(t, 1)
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(quiet))
	require.NoError(t, err)
	a, err := admin.New(q, admin.WithLogger(quiet))
	require.NoError(t, err)
	h, err := web.New(a, append([]web.Option{web.WithLogger(quiet)}, opts...)...)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	mux.Handle("/bare/", http.StripPrefix("/bare", h))
	mux.Handle("/bare", http.StripPrefix("/bare", h)) // as some routers do
	mux.Handle("/unstripped/", h)
	mux.Handle("/slash/", http.StripPrefix("/slash/", h))
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		_ = h.Close()
		server.Close()
		_ = q.Close()
	})
	return server
}

// read reads a page and follows redirects, as a browser does; it returns where it ended.
func read(t *testing.T, address string) (text string, at *url.URL, status int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(address)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(body), answer.Request.URL, answer.StatusCode
}

// All links, and what pages are made of, are there under any prefix, also behind a proxy that takes
// off a part of it.
func TestAnyPrefix(t *testing.T) {
	for _, prefix := range []string{"", "/tenure", "/ops/tools/tenure"} {
		server := mounted(t, prefix)
		for _, path := range []string{"/", "/jobs", "/job?name=a%2Fb", "/nothing", "/a%2Fb", "/a/b%2Fc", "/api/v2/nothing", "/order"} {
			page, at, _ := read(t, server.URL+prefix+path)
			for _, part := range strings.Split(page, `"`) { // what is in quotes
				target := html.UnescapeString(part)
				if !strings.HasPrefix(target, "./") && !strings.HasPrefix(target, "jobs") {
					continue
				}
				link, err := at.Parse(target)
				require.NoError(t, err)
				_, _, status := read(t, link.String())
				require.Equal(t, http.StatusOK, status, "%s of %s", target, path)
				require.True(t, strings.HasPrefix(link.Path, prefix+"/"), link.Path)
			}
		}
	}
}

func TestRoot(t *testing.T) {
	server := mounted(t, "/tenure")
	for _, path := range []string{"/tenure", "/bare", "/bare?x=1"} {
		_, at, status := read(t, server.URL+path)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, strings.Split(path, "?")[0]+"/", at.Path)
	}
	for _, path := range []string{"/unstripped/", "/slash/", "/slash/jobs"} { // of "/slash/" it was sent to itself
		page, _, status := read(t, server.URL+path)
		require.Equal(t, http.StatusNotFound, status, path)
		require.Contains(t, page, "http.StripPrefix", path)
	}
	text, _, status := read(t, server.URL+"/tenure/api/v1/nothing")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, text, `"error":"404 Not Found"`)
}

// With WithHosts a name that points to this process shows nothing.
func TestHosts(t *testing.T) {
	server := mounted(t, "", web.WithHosts("localhost", "127.0.0.1", "::1"))
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:80": 200, "localhost.": 200, "127.0.0.1:8080": 200, "[::1]": 200, "[::1]:8080": 200,
		"evil.example": 421, "evil.example:8080": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "": 421,
	} {
		for _, path := range []string{"/", "/api/v1/jobs", "/events", "/assets/app.js"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			answer := httptest.NewRecorder()
			server.Config.Handler.ServeHTTP(answer, r)
			if path != "/events" {
				require.Equal(t, want, answer.Code, "%s of %q", path, host)
			} else if want == 421 {
				require.Equal(t, want, answer.Code)
			}
		}
	}
}

// Assets may be kept for ever under the address that pages have for them, and are asked for
// otherwise.
func TestAssets(t *testing.T) {
	server := mounted(t, "/tenure")
	page, _, _ := read(t, server.URL+"/tenure/")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for name, media := range map[string]string{"app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		_, rest, found := strings.Cut(page, `"./assets/`+name)
		require.True(t, found, name)
		version, _, _ := strings.Cut(rest, `"`)
		for query, cached := range map[string]string{version: "public, max-age=31536000, immutable", "": "no-cache", "?v=old": "no-cache"} {
			answer, err := client.Get(server.URL + "/tenure/assets/" + name + query)
			require.NoError(t, err)
			_ = answer.Body.Close()
			require.Equal(t, http.StatusOK, answer.StatusCode)
			require.Equal(t, media, answer.Header.Get("Content-Type"))
			require.Equal(t, cached, answer.Header.Get("Cache-Control"), query)
			require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
		}
	}
}

// budget is what all that a browser gets may have, in bytes and not compressed.
const budget = 60_000

// The files of the page are smaller than half of that, and the start page with what it loads leaves
// room for thirty jobs.
func TestSize(t *testing.T) {
	total := 0
	files, err := os.ReadDir("assets")
	require.NoError(t, err)
	for _, e := range files {
		info, err := e.Info()
		require.NoError(t, err)
		total += int(info.Size())
	}
	t.Logf("%d bytes of assets", total)
	require.Less(t, total, budget/2)
	server := mounted(t, "")
	loaded := 0
	for _, path := range []string{"/", "/assets/app.css", "/assets/app.js", "/assets/icon.svg"} {
		text, _, status := read(t, server.URL+path)
		require.Equal(t, http.StatusOK, status)
		loaded += len(text)
	}
	t.Logf("%d bytes are loaded for the start page", loaded)
	require.Less(t, loaded, budget-25_000)
}

func TestOptions(t *testing.T) {
	_, err := web.New(nil)
	var oe *web.OptionError
	require.ErrorAs(t, err, &oe)
	fleet := redlocktest.Start(t, 1)
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithLogger(quiet))
	require.NoError(t, err)
	defer func() { _ = q.Close() }()
	a, err := admin.New(q)
	require.NoError(t, err)
	for name, o := range map[string]web.Option{
		"none":               nil,
		"no function":        web.WithActions(nil),
		"no logger":          web.WithLogger(nil),
		"no title":           web.WithTitle(" "),
		"long title":         web.WithTitle(strings.Repeat("x", 101)),
		"no trace":           web.WithTraceURL("https://tempo.example/"),
		"two traces":         web.WithTraceURL("https://tempo.example/{trace_id}/{trace_id}"),
		"trace of a script":  web.WithTraceURL("javascript:alert({trace_id})"),
		"trace of a path":    web.WithTraceURL("/trace/{trace_id}"),
		"trace in the host":  web.WithTraceURL("https://{trace_id}.example/"),
		"trace with a user":  web.WithTraceURL("https://ann:secret@tempo.example/{trace_id}"),
		"no hosts":           web.WithHosts(),
		"empty host":         web.WithHosts(""),
		"host with a port":   web.WithHosts("localhost:80"),
		"origin with a path": web.WithTrustedOrigins("https://ops.example/x"),
	} {
		_, err := web.New(a, o)
		require.ErrorAs(t, err, &oe, name)
		require.NotEmpty(t, oe.Error())
	}
	h, err := web.New(a, web.WithTraceURL("https://tempo.example/trace/{trace_id}?org=1"), web.WithTrustedOrigins("https://ops.example"))
	require.NoError(t, err)
	require.NoError(t, h.Close(), "of one that was never asked")
}

// The document's proxy sent a Host without its port, and orders on another port than a scheme's own
// were refused as those of another site.
func TestHostOfTheDocumentsProxy(t *testing.T) {
	text, err := os.ReadFile("../docs/steering.md")
	require.NoError(t, err)
	header := regexp.MustCompile(`proxy_set_header Host (\S+);`).FindSubmatch(text)
	require.NotNil(t, header)
	const browser = "ops.example:8443"
	host, known := map[string]string{"$host": "ops.example", "$http_host": browser}[string(header[1])]
	require.True(t, known, "%s", header[1])
	server := mounted(t, "", web.WithActions(as("ann")))
	post := func(host string) int {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/orders", strings.NewReader("kind=none")) // nothing is done
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://"+browser)
		r.Host = host
		answer := httptest.NewRecorder()
		server.Config.Handler.ServeHTTP(answer, r)
		return answer.Code
	}
	require.Equal(t, http.StatusForbidden, post("ops.example"))
	require.Equal(t, http.StatusBadRequest, post(host))
}
