package pages

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/e2e/cluster"
)

// every is each page, with what must be on it before it is looked at.
var every = []struct{ name, path, ready string }{
	{"overview", "", `document.querySelectorAll("#lanes li[data-election]").length > 0 && document.querySelectorAll("#lanes li[data-job]").length > 5`},
	{"jobs", "jobs", `document.querySelectorAll("#jobs tr[data-job]").length > 0`},
	{"job", "job?name=report", `document.querySelectorAll("#runs tr[data-token]").length > 5`},
	{"runs", "runs?name=report", `document.querySelectorAll("#runs tr[data-token]").length > 5`},
	{"run", "runs?name=report", `document.querySelectorAll("#facts[data-outcome=ok]").length === 1`},
	{"elections", "elections", `document.querySelectorAll("section[data-election] tr[data-term]").length > 0`},
	{"nodes", "nodes", `document.querySelectorAll("#nodes tr[data-node]").length === 3 && document.querySelectorAll("#replicas tr[data-replica]").length === 3`},
	{"orders", "orders", `document.querySelectorAll("#orders tr[data-id]").length > 0`},
	{"order", "order?kind=pause&job=report", `document.querySelector("form#order")`},
}

// firstRun is the address of the newest run of a page that lists some; empty for none.
func firstRun(p *browser.Page) string {
	return browser.Value[string](p, `document.querySelector("#runs a[href^='run?']")?.href ?? ""`)
}

// open opens one of every.
func open(p *browser.Page, site *cluster.Site, name, path string) {
	p.Goto(site.Page(path))
	if name == "run" {
		p.Wait(`document.querySelector("#runs a[href^='run?']")`)
		p.Goto(firstRun(p))
	}
}

// fits fails the test if the page has to be scrolled sideways.
func fits(t *testing.T, p *browser.Page, where string) {
	t.Helper()
	wide := browser.Value[[]string](p, `(() => {
		const w = document.documentElement.clientWidth
		if (Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) <= w) return []
		return [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > w + 0.5).slice(0, 5).map(e => e.outerHTML.slice(0, 200))
	})()`)
	assert.Empty(t, wide, "%s is wider than its window: these stick out", where)
}

// Every page opens, in light and dark, narrow and wide: the console has nothing to complain of, and
// axe-core finds nothing that keeps people from using it.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pause("mail", "the provider is down")
	w.runNow("backup")
	for _, page := range every {
		t.Run(page.name, func(t *testing.T) {
			p := browser.New(t)
			open(p, w.site, page.name, page.path)
			if page.name != "order" { // which shows nothing that changes
				live(p)
			}
			p.Wait(page.ready)
			require.Equal(t, page.name, browser.Value[string](p, "document.body.dataset.page"))
			require.NotEmpty(t, p.Text("h1"))
			// Colours are the same in windows of all widths.
			for _, look := range []struct {
				scheme string
				width  int64
			}{{"light", 1280}, {"dark", 1280}, {"dark", 768}, {"light", 320}} {
				p.Set(browser.Media("prefers-color-scheme", look.scheme))
				p.Set(browser.Viewport(look.width, 900))
				where := fmt.Sprintf("%s-%s-%d", page.name, look.scheme, look.width)
				fits(t, p, where)
				p.Usable(where)
				p.Picture(where, true)
			}
		})
	}
}

// seen is a name as a page shows it: what turns the direction of text is made visible.
func seen(name string) string {
	return strings.NewReplacer("\u202e", "⟨U+202E⟩", "\u2066", "⟨U+2066⟩").Replace(name)
}

// Names of jobs and replicas, reasons and errors do nothing, and are shown as they are.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const reason = `<script>window.ran = 5</script><a href="javascript:alert(6)">`
	w.pause(hostile[0], reason)
	p := browser.New(t, browser.Before(`window.alert = () => { window.ran = "alert" }`))
	inert := func(where string) {
		t.Helper()
		require.True(t, browser.Value[bool](p, "window.ran === undefined"), where)
		require.Zero(t, browser.Value[int](p, `document.querySelectorAll("main script, main img, main iframe, main a[href^='javascript:']").length`), where)
		p.Set(browser.Viewport(320, 900))
		fits(t, p, where)
		p.Picture("hostile-"+where+"-320", true)
		p.Set(browser.Viewport(1280, 900))
		p.Picture("hostile-"+where, true)
	}

	for _, path := range []string{"", "jobs", "elections", "nodes", "orders"} {
		p.Goto(w.site.Page(path))
		live(p)
		if path == "jobs" {
			for _, name := range hostile {
				p.Wait(fmt.Sprintf(`[...document.querySelectorAll("#jobs tr[data-job]")].some(r => r.dataset.job === %s && r.textContent.includes(%s))`,
					browser.Quote(name), browser.Quote(seen(name))), name)
			}
			require.False(t, browser.Value[bool](p, `/[\u202a-\u202e\u2066-\u2069]/.test(document.querySelector("#jobs").textContent)`), "nothing turns the direction of text")
			require.Zero(t, browser.Value[int](p, `[...document.querySelectorAll("#jobs th a *")].filter(e => e.children.length === 0 && e.tagName !== "BDI").length`), "names are isolated")
		}
		inert("page-" + path)
	}
	for i, name := range hostile {
		p.Goto(w.site.Page("jobs"))
		p.Wait(fmt.Sprintf("document.querySelector(%s)", browser.Quote(row(name)+" a")))
		p.Exec(fmt.Sprintf("document.querySelector(%s).click()", browser.Quote(row(name)+" a")))
		p.Wait(`document.body.dataset.page === "job"`)
		live(p)
		require.Contains(t, browser.Value[string](p, `document.querySelector("h1").textContent`), seen(name))
		if i != 0 { // which is paused
			p.Wait(fmt.Sprintf(`document.querySelector("#runs")?.textContent.includes(%s)`, browser.Quote(string([]rune(seen(name))[:10]))), "the error is shown")
		}
		inert(fmt.Sprintf("job-%d", i))
		u, err := url.Parse(p.URL())
		require.NoError(t, err)
		require.Equal(t, name, u.Query().Get("name"))
		p.Goto(w.site.Page("order?kind=pause&job=" + url.QueryEscape(name)))
		inert(fmt.Sprintf("order-%d", i))
	}
	p.Goto(w.site.Page("job?name=" + url.QueryEscape(hostile[0])))
	p.Wait(fmt.Sprintf(`document.querySelector("main").textContent.includes(%s)`, browser.Quote(reason)), "the reason is shown")
}

// Without script everything can be read, and orders can be given.
func TestWithoutScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pause("mail", "the provider is down")
	p := browser.New(t, browser.WithoutScript())
	for _, page := range every {
		w.eventually(page.name, func(_ context.Context) bool {
			p.Goto(w.site.Page(page.path))
			if to := firstRun(p); page.name == "run" && to != "" {
				p.Goto(to)
			}
			return browser.Value[bool](p, "Boolean("+page.ready+")")
		})
		require.Equal(t, "static", browser.Value[string](p, `document.querySelector("#state").dataset.state`), page.name)
		require.NotEmpty(t, p.Text("h1"), page.name)
		require.Empty(t, browser.Value[[]string](p, `[...document.querySelectorAll("noscript")].map(n => n.textContent).filter(t => /enable/i.test(t))`),
			"nobody is told to enable anything")
	}
	p.Goto(w.site.Page("jobs"))
	p.Exec(fmt.Sprintf(`document.querySelector(%s).value = "mail"`, browser.Quote("form#filter input[name=q]")))
	p.Picture("without-script-jobs", true)
	p.Goto(w.site.Page("job?name=backup"))
	p.Click("a[data-do=pause]")
	give(t, p, "no script is needed", "done")
	is, err := w.admin.Paused(t.Context(), admin.Job("backup"))
	require.NoError(t, err)
	require.Equal(t, "no script is needed", is.Reason)
}
