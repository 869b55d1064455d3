package pages

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/e2e/browser"
)

// tabTo presses Tab until an element has the focus, which must be visible at each step.
func tabTo(t *testing.T, p *browser.Page, selector string) {
	t.Helper()
	for range 200 {
		p.Key(kb.Tab)
		require.True(t, browser.Value[bool](p, `(() => {
			const e = document.activeElement
			if (e === document.body) return true
			const s = getComputedStyle(e)
			return (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none"
		})()`), "the focus is visible on %s", browser.Value[string](p, "document.activeElement.outerHTML.slice(0, 200)"))
		if browser.Value[bool](p, "document.activeElement.matches("+browser.Quote(selector)+")") {
			return
		}
	}
	require.FailNow(t, "Tab does not reach "+selector)
}

// Everything can be done with the keyboard alone: the whole way of an order.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := browser.New(t)
	p.Goto(w.site.URL)
	live(p)
	p.Key(kb.Tab)
	require.Equal(t, "#main", browser.Value[string](p, `document.activeElement.getAttribute("href")`), "the first stop skips the navigation")
	tabTo(t, p, `nav[aria-label="Pages"] a[href*="jobs"]`)
	p.Key(kb.Enter)
	p.Wait(`document.body.dataset.page === "jobs"`)
	tabTo(t, p, row("invoices")+" a")
	p.Key(kb.Enter)
	p.Wait(`document.body.dataset.page === "job"`)
	live(p)
	tabTo(t, p, "a[data-do=pause]")
	p.Key(kb.Enter)
	p.Wait(`document.body.dataset.page === "order"`)
	if !browser.Value[bool](p, `document.activeElement.name === "reason"`) {
		tabTo(t, p, "form#order [name=reason]")
	}
	p.Key("by hand")
	p.Key(kb.Enter)
	p.Wait(`document.querySelector("#result").dataset.result === "done"`)
	is, err := w.admin.Paused(t.Context(), admin.Job("invoices"))
	require.NoError(t, err)
	require.Equal(t, "by hand", is.Reason)

	// The focus stays where it is while the page changes below it.
	p.Goto(w.site.Page("jobs"))
	live(p)
	tabTo(t, p, row("report")+" a")
	// Nor does a row that gets another state move meanwhile.
	const order = `[...document.querySelectorAll("#jobs tr[data-job]")].map(r => r.dataset.job).join()`
	state := "document.querySelector(" + browser.Quote(row("import")) + ").dataset.state"
	before := browser.Value[string](p, order)
	for range 4 {
		p.Wait(state+" !== "+browser.Quote(browser.Value[string](p, state)), "it gets another state")
		require.Equal(t, before, browser.Value[string](p, order))
	}
	strip := fmt.Sprintf(`document.querySelector(%s).textContent`, browser.Quote(row("report")))
	was := browser.Value[string](p, strip)
	p.Wait(strip+" !== "+browser.Quote(was), "the row changes")
	require.True(t, browser.Value[bool](p, "document.activeElement.matches("+browser.Quote(row("report")+" a")+")"))
}

// Where people want less motion, nothing moves.
func TestReducedMotion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := browser.New(t, browser.Media("prefers-reduced-motion", "reduce"))
	for _, page := range every[:5] {
		open(p, w.site, page.name, page.path)
		live(p)
		p.Wait(page.ready)
		require.Empty(t, browser.Value[[]string](p, `document.getAnimations().filter(a => a.playState === "running" && a.effect.getComputedTiming().duration > 1)
			.map(a => a.animationName ?? a.transitionProperty)`), page.name)
		require.Equal(t, "auto", browser.Value[string](p, "getComputedStyle(document.documentElement).scrollBehavior"), page.name)
	}
}
