package pages

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/e2e/browser"
)

// give fills the form of an order in and sends it, and waits for what came of it.
func give(t *testing.T, p *browser.Page, reason, result string) {
	t.Helper()
	p.Wait(`document.body.dataset.page === "order"`)
	p.Click("form#order button[type=submit]")
	p.Wait(`document.querySelector("form#order :invalid, form#order:invalid")`, "an order without a reason is not sent")
	require.False(t, browser.Value[bool](p, `document.querySelector("#result") !== null`))
	p.Type("form#order [name=reason]", reason)
	p.Click("form#order button[type=submit]")
	p.Wait(fmt.Sprintf(`document.querySelector("#result").dataset.result === %s`, browser.Quote(result)))
	p.Picture("result-"+result+"-"+strings.ReplaceAll(reason, " ", "-"), true)
}

// Every order is given by clicking through, asks for a reason, has its effect, and is told in the
// page and to the package admin.
func TestEveryOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := browser.New(t)
	ctx := t.Context()
	openJob := func(name string) {
		t.Helper()
		p.Click(`nav[aria-label="Pages"] a[href*="jobs"]`)
		p.Wait(`document.body.dataset.page === "jobs"`)
		p.Click(row(name) + " a")
		p.Wait(`document.body.dataset.page === "job"`)
	}
	p.Goto(w.site.URL)

	t.Log("pause")
	openJob("report")
	p.Click("a[data-do=pause]")
	p.Choose("select[name=for]", "1h")
	give(t, p, "the database moves", "done")
	paused, err := w.admin.Paused(ctx, admin.Job("report"))
	require.NoError(t, err)
	assert.Equal(t, "ann", paused.By)
	assert.Equal(t, "the database moves", paused.Reason)
	assert.WithinDuration(t, time.Now().Add(time.Hour), paused.Until, browser.Patience)
	openJob("report")
	p.Wait(`document.querySelector("main").textContent.includes("the database moves")`, "the page of the job says why it is paused")
	p.Click(`nav[aria-label="Pages"] a[href*="jobs"]`)
	p.Wait(fmt.Sprintf(`document.querySelector(%s).dataset.state === "paused"`, browser.Quote(row("report"))))

	t.Log("resume")
	openJob("report")
	p.Click("a[data-do=resume]")
	give(t, p, "it has moved", "done")
	w.notPaused(admin.Job("report"))
	p.Click(`nav[aria-label="Pages"] a[href*="jobs"]`)
	p.Wait(fmt.Sprintf(`["ok", "running"].includes(document.querySelector(%s).dataset.state)`, browser.Quote(row("report"))))

	t.Log("run now")
	openJob("backup")
	p.Click("a[data-do=run_now]")
	give(t, p, "a customer waits", "done")
	run := w.running("backup")
	assert.Equal(t, "a customer waits", w.order(admin.OrderRunNow).Why)
	openJob("backup")
	p.Wait(fmt.Sprintf(`document.querySelector("#facts").textContent.includes(%s)`, browser.Quote(run.Replica)), "the page says who runs it")

	t.Log("run now, while it runs")
	p.Click("a[data-do=run_now]")
	give(t, p, "once more", "refused")

	t.Log("cancel")
	openJob("backup")
	p.Click("a[data-do=cancel]")
	give(t, p, "it is the wrong one", "done")
	assert.Equal(t, run.ID(), w.order(admin.OrderCancel).Run)
	openJob("backup")
	p.Wait(fmt.Sprintf(`document.querySelector('#runs tr[data-token="%d"]').textContent.includes("cancelled")`, run.FencingToken))

	t.Log("resign")
	p.Click(`nav[aria-label="Pages"] a[href*="elections"]`)
	p.Wait(`Number(document.querySelector('section[data-election="poller"]').dataset.term ||
		document.querySelector('[data-election="poller"][data-term]').dataset.term) > 0`)
	before, err := w.admin.Election(ctx, "poller")
	require.NoError(t, err)
	require.NotNil(t, before.Leader)
	p.Click(`[data-election="poller"] a[data-do=resign]`)
	give(t, p, "maintenance", "done")
	w.eventually("another term begins", func(ctx context.Context) bool {
		e, err := w.admin.Election(ctx, "poller")
		return err == nil && e.Leader != nil && e.Leader.Term > before.Leader.Term
	})
	p.Click(`nav[aria-label="Pages"] a[href*="elections"]`)
	p.Wait(fmt.Sprintf(`Number(document.querySelector('[data-election="poller"][data-term]').dataset.term) > %d`, before.Leader.Term))
	p.Wait(fmt.Sprintf(`document.querySelector('[data-election="poller"] tr[data-term="%d"]').textContent.includes("resigned")`, before.Leader.Term))

	t.Log("pause all, resume all")
	p.Click(`nav[aria-label="Pages"] a`)
	p.Click(`a[data-do=pause][href*="all=1"]`)
	give(t, p, "the data centre moves", "done")
	_, err = w.admin.Paused(ctx, admin.AllJobs)
	require.NoError(t, err)
	p.Click(`nav[aria-label="Pages"] a`)
	p.Click(`a[data-do=resume][href*="all=1"]`)
	give(t, p, "all is there", "done")
	w.notPaused(admin.AllJobs)

	t.Log("all orders are told")
	p.Click(`nav[aria-label="Pages"] a[href*="orders"]`)
	for _, reason := range []string{"the database moves", "it has moved", "a customer waits", "once more", "it is the wrong one", "maintenance",
		"the data centre moves", "all is there"} {
		p.Wait(fmt.Sprintf(`[...document.querySelectorAll("#orders tr[data-id]")].some(r => r.textContent.includes(%s) && r.textContent.includes("ann"))`,
			browser.Quote(reason)), reason)
	}
	p.Picture("orders-all", true)
}

// A page of another origin that sends the form in the operator's browser is refused.
func TestOrdersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	form := url.Values{"kind": {"pause"}, "job": {"report"}, "reason": {"mischief"}}
	stranger := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, `<!doctype html><title>free prizes</title><link rel=icon href=data:,><form method=post action=%q>
			<input name=kind value=pause><input name=job value=report><input name=reason value=mischief><button>Win</button></form>`, w.site.Page("order"))
	}))
	t.Cleanup(stranger.Close)

	// On the same machine, which is the same site to a browser; and on another one.
	for _, origin := range []string{stranger.URL, strings.Replace(stranger.URL, "127.0.0.1", "localhost", 1)} {
		p := browser.New(t)
		p.Tolerate("403")
		p.Tolerate("net::ERR_") // of answers that a stranger may not read
		p.Goto(origin)
		p.Click("button")
		p.Wait(`location.href.startsWith(`+browser.Quote(w.site.URL)+`)`, "the form was sent")
		require.Equal(t, 403, browser.Value[int](p, `performance.getEntriesByType("navigation")[0].responseStatus`))
		p.Goto(origin)
		p.Exec(fmt.Sprintf(`fetch(%s, {method: "POST", mode: "no-cors", credentials: "include", headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: %s})
			.then(() => document.title = "sent", () => document.title = "sent")`, browser.Quote(w.site.Page("api/v1/orders")), browser.Quote(form.Encode())))
		p.Wait(`document.title === "sent"`)
	}
	w.notPaused(admin.Job("report"))
	all, err := w.admin.Orders(t.Context(), 100)
	require.NoError(t, err)
	require.Empty(t, all, "nothing was ordered")
}
