package pages

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/e2e/cluster"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// stay marks the page, so that a test sees whether it was loaded anew.
func stay(p *browser.Page) { p.Exec("window.stays = true") }

// Two tabs show the same, without being loaded anew; and a window has connections for eight.
func TestTabs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := browser.New(t)
	first.Goto(w.site.Page("jobs"))
	live(first)
	second := first.Beside()
	second.Goto(w.site.Page("jobs"))
	live(second)
	stay(first)
	stay(second)
	w.pause("invoices", "for both")
	paused := fmt.Sprintf(`window.stays && document.querySelector(%s).dataset.state === "paused"`, browser.Quote(row("invoices")))
	first.Wait(paused)
	second.Wait(paused)

	// A browser has six connections to a server.
	tabs := []*browser.Page{first, second}
	for len(tabs) < 8 {
		tab := first.Beside()
		tab.Goto(w.site.URL)
		tab.Wait(`document.querySelector("#lanes li[data-election]")`)
		tabs = append(tabs, tab)
	}
	last := tabs[len(tabs)-1]
	last.Goto(w.site.Page("order?kind=resume&job=invoices"))
	give(t, last, "for all", "done")
	for _, tab := range tabs[:2] {
		tab.Wait(fmt.Sprintf(`window.stays && document.querySelector(%s).dataset.state !== "paused"`, browser.Quote(row("invoices"))))
	}
}

// A replica that is killed while it serves the page: the page says that what it shows is old, and
// goes on by itself when the replica is there again.
func TestTheReplicaThatServesDies(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, 3, ttl)
	does := cluster.Replica{Jobs: jobs(), Election: "poller"}
	c.Replica("a", does)
	c.Replica("b", does)
	does.Listen = valkeytest.FreeAddress(t)
	serving := c.Replica("serving", does)
	p := browser.New(t)
	p.Goto("http://" + does.Listen + cluster.Prefix + "/")
	live(p)
	p.Wait(`document.querySelector("#lanes li[data-election]")`)
	stay(p)

	p.Tolerate("net::ERR_")
	require.NoError(t, serving.Kill())
	p.Wait(`["lost", "polling"].includes(document.querySelector("#state").dataset.state)`)
	p.Wait(`document.querySelector("#state").dataset.state === "lost"`)
	require.NotEmpty(t, p.Text("#state"))
	t.Log("the page says:", p.Text("#state"))
	p.Picture("lost", true)
	p.Usable("a page whose server is gone")

	c.Replica("serving", does)
	p.Wait(`window.stays && document.querySelector("#state").dataset.state === "live"`, "it goes on by itself")
	p.Wait(`document.querySelector("#lanes li[data-job]")`)
}

// quickest is the shortest of some loads of a page, in the browser's own measure. One of them is
// not held up by other things that the machine does.
func quickest(p *browser.Page, address string) time.Duration {
	least := time.Hour
	for range 5 {
		p.Goto(address)
		ms := browser.Value[float64](p, `performance.getEntriesByType("navigation")[0].responseEnd - performance.getEntriesByType("navigation")[0].requestStart`)
		least = min(least, time.Duration(ms*float64(time.Millisecond)))
	}
	return least
}

// Nodes that hang hang no page: it answers within a second, and says which node it is and what that
// means.
func TestNodesThatHang(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := browser.New(t)
	open := browser.New(t)
	open.Goto(w.site.URL)
	live(open)
	stay(open)

	require.NoError(t, w.Fleet.Node(0).Freeze())
	p.Goto(w.site.Page("nodes"))
	p.Wait(`document.querySelectorAll("#nodes tr[data-votes=true]").length === 2 && document.querySelectorAll("#nodes tr[data-votes=false]").length === 1`)
	for _, page := range every {
		took := quickest(p, w.site.Page(page.path))
		t.Logf("one of three nodes hangs: %s is there after %v", page.name, took)
		require.Less(t, took, time.Second, page.name)
	}
	open.Wait(`window.stays && /2 of 3/.test(document.querySelector("#sentence").textContent)`)
	t.Log(open.Text("#sentence"))
	open.Picture("one-node-hangs", true)

	require.NoError(t, w.Fleet.Node(1).Freeze())
	open.Wait(`window.stays && /1 of 3 .*nothing is granted/.test(document.querySelector("#sentence").textContent)`)
	t.Log(open.Text("#sentence"), open.Text("#problems"))
	for _, page := range every[:len(every)-1] {
		took := quickest(p, w.site.Page(page.path))
		t.Logf("two of three nodes hang: %s is there after %v", page.name, took)
		require.Less(t, took, time.Second, page.name)
		require.Contains(t, p.Text("#sentence"), "nothing is granted", page.name)
	}
	open.Picture("no-quorum", true)
	open.Usable("a page without a quorum")

	require.NoError(t, w.Fleet.Node(0).Thaw())
	require.NoError(t, w.Fleet.Node(1).Thaw())
	open.Wait(`window.stays && /3 of 3/.test(document.querySelector("#sentence").textContent) && !document.querySelector("#problems")?.checkVisibility()`)
	p.Goto(w.site.Page("nodes"))
	p.Picture("nodes-after-an-outage", true)
}

// A browser in another zone whose clock is wrong by an hour shows the same ages and times.
func TestAnotherZoneAndAWrongClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pause("mail", "the provider is down")
	w.runNow("backup")
	// The axis of the timeline ends when the page was made.
	const times = `[...document.querySelectorAll("main time:not(.axis time)")].map(e => e.getAttribute("datetime") + " | " + e.textContent.trim())`
	for name, wrong := range map[string]time.Duration{"fast": time.Hour, "slow": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			right := browser.New(t, browser.Zone("UTC"))
			other := browser.New(t, browser.Zone("Asia/Kolkata"), browser.WrongClock(wrong))
			for _, page := range []string{"job?name=mail", "job?name=backup", "jobs?q=invoices"} {
				right.Goto(w.site.Page(page))
				other.Goto(w.site.Page(page))
				live(right)
				live(other)
				// An age that changes between two looks differs by a second: look again.
				require.Eventually(t, func() bool {
					return fmt.Sprint(browser.Value[[]string](right, times)) == fmt.Sprint(browser.Value[[]string](other, times))
				}, browser.Patience, 50*time.Millisecond, "%v\n%v", browser.Value[[]string](right, times), browser.Value[[]string](other, times))
				require.NotEmpty(t, browser.Value[[]string](other, times), page)
				if page == "job?name=backup" {
					// An age goes on by itself.
					const age = `document.querySelector("main time[data-ago]").textContent`
					was := browser.Value[string](other, age)
					other.Wait(age+" !== "+browser.Quote(was), "an age goes on")
				}
			}
			t.Log(browser.Value[[]string](other, times))
		})
	}
	paused, err := w.admin.Paused(t.Context(), admin.Job("mail"))
	require.NoError(t, err)
	p := browser.New(t, browser.Zone("America/St_Johns"), browser.WrongClock(time.Hour))
	p.Goto(w.site.Page("job?name=mail"))
	live(p)
	p.Wait(fmt.Sprintf(`document.querySelector("main").textContent.includes(%s)`, browser.Quote(paused.Since.UTC().Format("15:04:05"))), "since when it is paused, in UTC")
}

// Without replicas, jobs and orders each page says what to do.
func TestEmpty(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, 3, ttl)
	site := c.Serve(c.Admin(c.Quorum("operator")))
	p := browser.New(t)
	for _, page := range []struct{ path, empty string }{{"", "#empty-elections"}, {"jobs", "#empty-jobs"}, {"elections", "#empty-elections"},
		{"nodes", "#empty-replicas"}, {"orders", "#empty-orders"}} {
		p.Goto(site.Page(page.path))
		live(p)
		p.Wait(fmt.Sprintf(`document.querySelector(%s).textContent.trim().length > 20`, browser.Quote(page.empty)))
		t.Logf("%q: %s", page.path, p.Text(page.empty))
		p.Usable("empty " + page.path)
		p.Picture("empty-"+page.path, true)
	}
	// What begins while the page is open is shown in it.
	p.Goto(site.Page("jobs"))
	live(p)
	stay(p)
	c.Replica("first", cluster.Replica{Jobs: jobs()})
	p.Wait(fmt.Sprintf(`window.stays && document.querySelector(%s)`, browser.Quote(row("report"))))
}
