package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
)

// serve serves a page under a policy, and a script that writes "ran" into it.
func serve(t *testing.T, policy, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Security-Policy", policy)
			fmt.Fprintf(w, "<!doctype html><html lang=en><title>a page</title><link rel=icon href=data:,><main><h1>A page</h1>%s</main>", body)
		case "/script.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, `document.getElementById("said").textContent = "ran"`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const strict = "default-src 'none'; script-src 'self'; img-src data:"

func TestProblemsAreHeard(t *testing.T) {
	for name, c := range map[string]struct{ policy, body, want string }{
		"error on the console":  {"", `<script>console.error("it is", "wrong")</script>`, "wrong"},
		"exception":             {"", `<script>nothing.at.all()</script>`, "nothing is not defined"},
		"failed load":           {"", `<img alt="" src="/missing.png">`, "404"},
		"script of the page":    {strict, `<script>1</script>`, "content security policy: script-src"},
		"style of the page":     {strict, `<p style="color: red">red</p>`, "content security policy: style-src"},
		"script from elsewhere": {strict, `<script src="http://127.0.0.1:1/x.js"></script>`, "content security policy: script-src"},
	} {
		t.Run(name, func(t *testing.T) {
			p := browser.New(t)
			p.Goto(serve(t, c.policy, c.body))
			var found []string
			require.Eventually(t, func() bool {
				found = append(found, p.TakeProblems()...)
				return strings.Contains(strings.Join(found, "\n"), c.want)
			}, browser.Patience, 10*time.Millisecond, "%v", &found)
		})
	}
}

func TestAxeFindsWhatNotEverybodyCanUse(t *testing.T) {
	p := browser.New(t)
	p.Goto(serve(t, strict, `<img src="data:,x"><button></button>`))
	var ids []string
	for _, v := range p.Axe() {
		if v.Serious() {
			ids = append(ids, v.ID)
		}
	}
	require.ElementsMatch(t, []string{"button-name", "image-alt"}, ids)
}

func TestWhatAPersonsBrowserIsLike(t *testing.T) {
	url := serve(t, "", `<p id="said">nothing</p><script src="/script.js"></script>`)

	p := browser.New(t, browser.WithoutScript())
	p.Goto(url)
	require.Equal(t, "nothing", p.Text("#said"), "no script is run")

	began := time.Now()
	p = browser.New(t, browser.Zone("Pacific/Kiritimati"), browser.WrongClock(-time.Hour), browser.Viewport(320, 700),
		browser.Media("prefers-color-scheme", "dark", "prefers-reduced-motion", "reduce"))
	p.Goto(url)
	require.Equal(t, -14*60, browser.Value[int](p, "new Date().getTimezoneOffset()"))
	require.WithinDuration(t, began.Add(-time.Hour), time.UnixMilli(browser.Value[int64](p, "Date.now()")), browser.Patience)
	require.Equal(t, 320, browser.Value[int](p, "innerWidth"))
	require.True(t, browser.Value[bool](p, `matchMedia("(prefers-color-scheme: dark)").matches && matchMedia("(prefers-reduced-motion: reduce)").matches`))
}
