package demonstration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
)

// stage is an open page of the demonstration.
type stage struct {
	*browser.Page
	t *testing.T
	// patience is long: the page's own time goes on with the work of a browser that is busy.
	patience time.Duration
}

// open opens the page and waits until jobs run.
func open(t *testing.T, url string) *stage {
	t.Helper()
	s := &stage{Page: browser.New(t), t: t, patience: 5 * browser.Patience}
	s.Goto(url)
	s.Wait(`document.documentElement.dataset.connected === "true"`)
	s.ticking()
	return s
}

// count is a number that the page counts.
func (s *stage) count(id string) int {
	s.t.Helper()
	return browser.Value[int](s.Page, fmt.Sprintf("Number(document.getElementById(%s).value)", browser.Quote(id)))
}

// ticking waits until some ticks more were run.
func (s *stage) ticking() {
	s.t.Helper()
	ticks := s.count("ticks")
	s.WaitFor(s.patience, fmt.Sprintf(`Number(document.getElementById("ticks").value) > %d`, ticks+1), "ticks are run")
}

// leader is who leads.
func (s *stage) leader() string {
	s.t.Helper()
	s.WaitFor(s.patience, `document.getElementById("leader").dataset.leader !== ""`, "somebody leads")
	return browser.Value[string](s.Page, `document.getElementById("leader").dataset.leader`)
}

// press presses a button that can be pressed, and waits until a condition holds. The mouse would
// miss one that moves, because a text above it has grown.
func (s *stage) press(button, until string) {
	s.t.Helper()
	s.Wait(fmt.Sprintf(`(() => {
		const b = document.querySelector(%s)
		if (!b || b.disabled) return false
		b.scrollIntoView({block: "center"})
		const r = b.getBoundingClientRect(), top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)
		if (!b.contains(top)) return false
		b.click()
		return true
	})()`, browser.Quote(button)), "the button can be pressed")
	s.WaitFor(s.patience, until, "after ", button)
	require.Empty(s.t, s.Text("#notice"), "after %s", button)
}

// state is the condition that a card shows a state.
func state(card, state string) string {
	return fmt.Sprintf("document.getElementById(%s).dataset.state === %s", browser.Quote(card), browser.Quote(state))
}

// told waits until a story has begun and ended.
func (s *stage) told(story string) {
	s.t.Helper()
	s.press("#"+story, fmt.Sprintf("document.getElementById('story').dataset.story === %s", browser.Quote(story)))
	s.WaitFor(3*s.patience, "document.getElementById('story').dataset.story === ''", "the story has an end")
}

// mended waits until nothing is broken and ticks are run.
func (s *stage) mended() {
	s.t.Helper()
	if browser.Value[bool](s.Page, "!document.getElementById('mend').disabled") {
		s.press("#mend", "true")
	}
	s.WaitFor(2*s.patience, `document.getElementById("mend").disabled && [...document.querySelectorAll("#replicas .card, #nodes .card")].every(c => c.dataset.state === "running") &&
		[...document.querySelectorAll("#nodes .card")].every(c => c.dataset.votes === "true")`, "all is mended")
	s.ticking()
}

// safe fails the test if anything happened that is promised not to.
func (s *stage) safe(after string) {
	s.t.Helper()
	for _, id := range []string{"twice", "overlaps", "accepted"} {
		require.Zero(s.t, s.count(id), "%s, after %s", id, after)
	}
	require.Zero(s.t, browser.Value[int](s.Page, `document.querySelectorAll("#timeline [data-bad=true]").length`), after)
}

// looks looks at the page as everybody's browser may show it.
func (s *stage) looks() {
	s.t.Helper()
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 1280}, {"dark", 1280}, {"light", 320}} {
		s.Set(browser.Media("prefers-color-scheme", look.scheme))
		s.Set(browser.Viewport(look.width, 1000))
		name := fmt.Sprintf("demo-%s-%d", look.scheme, look.width)
		assert.LessOrEqual(s.t, browser.Value[int64](s.Page, "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"), look.width, "%s is not wider than its window", name)
		s.Usable(name)
		s.Picture(name, true)
	}
	s.Set(browser.Viewport(1280, 1000))
	s.Set(browser.Media("prefers-color-scheme", "light"))
}

// buttons presses every button of the panel, of each replica and each node.
func (s *stage) buttons() {
	s.t.Helper()
	names := browser.Value[[]string](s.Page, `[...document.querySelectorAll("#replicas .card")].map(c => c.id)`)
	require.Len(s.t, names, 3)
	for i, card := range names {
		of := "#" + card + " "
		s.press(of+"[data-do=freeze]", state(card, "frozen"))
		s.press(of+"[data-do=thaw]", state(card, "running"))
		s.press(of+"[data-do=kill]", state(card, "dead"))
		s.press(of+"[data-do=restart]", state(card, "running"))
		s.press(of+"[data-do=partition]", fmt.Sprintf(`document.querySelectorAll('#links [data-replica="%s"][aria-pressed=true]').length === 5`, card[len("replica-"):]))
		s.press(of+"[data-do=heal]", fmt.Sprintf(`document.querySelectorAll('#links [data-replica="%s"][aria-pressed=true]').length === 0`, card[len("replica-"):]))
		s.press(of+"[data-do=stop]", state(card, "dead"))
		s.press(of+"[data-do=restart]", state(card, "running"))
		link := fmt.Sprintf(`#links [data-replica="%s"][data-node="%d"]`, card[len("replica-"):], i+1)
		s.press(link, fmt.Sprintf("document.querySelector(%s).ariaPressed === 'true'", browser.Quote(link)))
		s.press(link, fmt.Sprintf("document.querySelector(%s).ariaPressed === 'false'", browser.Quote(link)))
	}
	s.ticking()
	s.safe("the buttons of the replicas")

	nodes := browser.Value[[]string](s.Page, `[...document.querySelectorAll("#nodes .card")].map(c => c.id)`)
	require.Len(s.t, nodes, 5)
	for i, card := range nodes {
		of := "#" + card + " "
		s.press(of+"[data-do=freeze]", state(card, "frozen"))
		s.press(of+"[data-do=thaw]", state(card, "running"))
		s.press(of+"[data-do=kill]", state(card, "dead"))
		s.press(of+"[data-do=restart][data-data=true]", state(card, "running"))
		s.press(of+"[data-do=partition]", fmt.Sprintf(`document.querySelectorAll('#links [data-node="%d"][aria-pressed=true]').length === 3`, i+1))
		s.press(of+"[data-do=heal]", fmt.Sprintf(`document.querySelectorAll('#links [data-node="%d"][aria-pressed=true]').length === 0`, i+1))
	}
	// One that has forgotten all, and one whose clock has jumped, do not vote for a while. The
	// other three do.
	s.press("#node-1 [data-do=restart][data-data=false]", `document.getElementById("node-1").dataset.votes === "false"`)
	s.press("#node-2 [data-do=jump]", `document.querySelector("#log").textContent.includes("node 2")`)
	s.ticking()
	s.mended()
	s.safe("the buttons of the nodes")
}
