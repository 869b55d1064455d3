package pages

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/e2e/cluster"
	"github.com/tenure-dev/tenure/internal/child"
)

const (
	// storyTTL is that of the story's leases, storyExtend the extend interval of a TTL.
	storyTTL    = 3 * time.Second
	storyExtend = storyTTL / 3
	// storySlack is what a busy machine may add to what is promised: a round, a wake-up, and the
	// way into the page.
	storySlack = 7 * time.Second
)

// sight is who leads, as the page has shown it from a moment on.
type sight struct {
	At     int64  `json:"at"` // Unix milliseconds
	Leader string `json:"leader"`
	Term   uint64 `json:"term"`
}

// observe has the page write down each change of who leads.
func observe(p *browser.Page, election string) {
	p.Exec(fmt.Sprintf(`
		window.sights = []
		const look = () => {
			const r = document.querySelector('#lanes li[data-election=%s]')
			if (!r) return
			const s = {at: Date.now(), leader: r.dataset.leader ?? "", term: Number(r.dataset.term) || 0}, last = window.sights.at(-1)
			if (!last || last.leader !== s.leader || last.term !== s.term) window.sights.push(s)
		}
		look()
		new MutationObserver(look).observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true})`, election))
}

// leads waits until the page shows a leader other than these, and returns when it did first.
func leads(t *testing.T, p *browser.Page, after time.Time, not ...string) (sight, time.Duration) {
	t.Helper()
	var found sight
	require.Eventually(t, func() bool {
		for _, s := range browser.Value[[]sight](p, "window.sights") {
			if s.At >= after.UnixMilli() && s.Leader != "" && !slices.Contains(not, s.Leader) {
				found = s
				return true
			}
		}
		return false
	}, browser.Patience, 20*time.Millisecond, "the page shows another leader")
	return found, time.UnixMilli(found.At).Sub(after)
}

// termDoc is a term in the JSON of the page.
type termDoc struct {
	Number   uint64  `json:"number"`
	Identity string  `json:"identity"`
	How      string  `json:"how"`
	Gap      float64 `json:"gap_ms"`
}

func terms(p *browser.Page) []termDoc {
	return browser.Value[[]termDoc](p, `fetch("api/v1/elections").then(r => r.json()).then(d => d.elections[0].terms)`)
}

// runDoc is a run in the JSON of the page.
type runDoc struct {
	Tick    string `json:"tick"`
	Replica string `json:"replica"`
	Token   uint64 `json:"token"`
}

// A kill, a freeze and a rolling deploy, as somebody sees them who looks at the page meanwhile.
func TestStory(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, 3, storyTTL)
	does := cluster.Replica{Leader: "jobs", Jobs: []cluster.Job{{Name: "report", Cron: "* * * * * *", Takes: 100 * time.Millisecond}}}
	replicas := make(map[string]*child.Replica)
	start := func(identity string) { replicas[identity] = c.Replica(identity, does) }
	for _, identity := range []string{"a", "b", "c"} {
		start(identity)
	}
	site := c.Serve(c.Admin(c.Quorum("operator")))
	p := browser.New(t)
	p.Goto(site.URL)
	live(p)
	p.Wait(`document.querySelector("#lanes li[data-election=jobs]").dataset.leader !== ""`)
	observe(p, "jobs")
	p.Picture("story-1-before", false)
	// A candidate must be known before it is needed.
	require.Eventually(t, func() bool {
		return browser.Value[int](p, `fetch("api/v1/elections").then(r => r.json()).then(d => d.elections[0].candidates.length)`) == 3
	}, browser.Patience, 50*time.Millisecond)

	row := func(what, promised, shown string) {
		t.Logf("| %-62s | promised: %-28s | the page shows: %-28s |", what, promised, shown)
	}
	rounded := func(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }
	takeOver := fmt.Sprintf("%v to %v and a round", storyTTL-storyExtend, storyTTL)

	// The leader's process is killed.
	now, _ := leads(t, p, time.Time{})
	killed := time.Now()
	require.NoError(t, replicas[now.Leader].Kill())
	next, took := leads(t, p, killed, now.Leader)
	row("kill -9 of the leader "+now.Leader+": another leads", takeOver, next.Leader+" after "+rounded(took))
	assert.Greater(t, took, storyTTL-storyExtend-100*time.Millisecond, "not before the lease may have ended")
	assert.Less(t, took, storyTTL+storySlack)
	p.Picture("story-2-killed", false)
	start(now.Leader + "2")

	// The next one is frozen, and thawed when another one leads.
	now = next
	frozen := time.Now()
	require.NoError(t, replicas[now.Leader].Freeze())
	next, took = leads(t, p, frozen, now.Leader)
	row("kill -STOP of the leader "+now.Leader+": another leads", takeOver, next.Leader+" after "+rounded(took))
	assert.Greater(t, took, storyTTL-storyExtend-100*time.Millisecond, "not before the lease may have ended")
	assert.Less(t, took, storyTTL+storySlack)
	p.Picture("story-3-frozen", false)
	thawed := time.Now()
	require.NoError(t, replicas[now.Leader].Thaw())
	var lost time.Duration
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(terms(p), func(d termDoc) bool {
			lost = time.Since(thawed)
			return d.Number == now.Term && d.How == "lost"
		})
	}, browser.Patience, 20*time.Millisecond, "the frozen leader tells that it lost its term")
	row("kill -CONT: it says that its term was lost", "at once", "after "+rounded(lost))
	assert.NotEqual(t, now.Leader, browser.Value[string](p, `document.querySelector("#lanes li[data-election=jobs]").dataset.leader`), "it does not lead again by that")

	// Each replica is stopped in order and another one started, as a rolling deploy does.
	deploy := time.Now()
	var gaps []float64
	old := []string{}
	for identity, r := range replicas {
		if r.Running() {
			old = append(old, identity)
		}
	}
	slices.Sort(old)
	for _, identity := range old {
		start("new-" + identity)
		replicas[identity].Stop()
	}
	last, _ := leads(t, p, deploy, old...)
	require.Eventually(t, func() bool {
		gaps = nil
		for _, d := range terms(p) {
			if d.Number > next.Term && d.Gap > 0 {
				gaps = append(gaps, d.Gap)
			}
		}
		return len(gaps) > 0 && browser.Value[uint64](p, `Number(document.querySelector("#lanes li[data-election=jobs]").dataset.term)`) >= last.Term
	}, browser.Patience, 50*time.Millisecond, "the hand-overs are told")
	row(fmt.Sprintf("rolling deploy of %d replicas: time without a leader, the longest", len(old)), "a call and a round", fmt.Sprintf("%.0f ms of %d hand-overs", slices.Max(gaps), len(gaps)))
	assert.Less(t, slices.Max(gaps), float64(storyTTL.Milliseconds())+float64(storySlack.Milliseconds()))
	p.Picture("story-4-deployed", false)

	// What has run meanwhile: each tick once.
	var runs []runDoc
	require.Eventually(t, func() bool {
		runs = browser.Value[[]runDoc](p, `fetch("api/v1/job?name=report").then(r => r.json()).then(d => d.runs ?? [])`)
		return len(runs) > 0
	}, browser.Patience, 100*time.Millisecond, "runs are told")
	ticks := make(map[string]string)
	for _, r := range runs {
		if r.Tick != "" {
			require.Empty(t, ticks[r.Tick], "a tick is run once: %+v", runs)
			ticks[r.Tick] = r.Replica
		}
	}
	row(fmt.Sprintf("the last %d ticks of a job of every second", len(ticks)), "none twice", "none twice")
	p.Goto(site.Page("elections"))
	live(p)
	p.Picture("story-5-elections", true)
}
