package demonstration

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
)

// incidents walks through the six of docs/start.md, in its order.
func (s *stage) incidents() {
	s.t.Helper()
	s.died()
	s.deployed()
	s.cutOff()
	s.mostNodes()
	s.paused()
	s.forgetful()
}

// leads is the condition that another replica leads, or nobody for "".
func leads(not string) string {
	return fmt.Sprintf(`!["", %s].includes(document.getElementById("leader").dataset.leader)`, browser.Quote(not))
}

// took logs and checks the take-over that the page tells of, from a replica.
func (s *stage) took(was, how string) {
	s.t.Helper()
	s.WaitFor(s.patience, leads(was), "another one leads")
	s.WaitFor(s.patience, fmt.Sprintf(`document.getElementById("takeover").textContent.includes(%s)`, browser.Quote("after "+was+" ")))
	after := browser.Value[float64](s.Page, `Number(document.getElementById("takeover").dataset.after)`)
	bound := browser.Value[float64](s.Page, `Number(document.getElementById("takeover").dataset.bound)`)
	s.t.Logf("| %-10s of the leader %s | promised: %6.0f ms at most | the page shows %6.0f ms |", how, was, bound, after)
	assert.LessOrEqual(s.t, after, bound+float64(slack.Milliseconds()), "%s: %s", how, s.Text("#takeover"))
}

// 1. The leader dies. Its run is run again, and what was missed follows.
func (s *stage) died() {
	s.t.Helper()
	was := s.leader()
	s.press("#replica-"+was+" [data-do=kill]", state("replica-"+was, "dead"))
	s.took(was, "kill")
	s.press("#replica-"+was+" [data-do=restart]", state("replica-"+was, "running"))
	s.ticking()
	s.safe("the leader's death")
}

// 2. A rolling deploy: the lead changes hands, and each replica is another process.
func (s *stage) deployed() {
	s.t.Helper()
	s.told("deploy")
	s.WaitFor(s.patience, `document.getElementById("log").textContent.includes("every replica has been replaced")`)
	s.Picture("demo-2-deployed", false)
	s.safe("a rolling deploy")
}

// 3. The leader is cut off. Without two of its five links nothing happens.
func (s *stage) cutOff() {
	s.t.Helper()
	was := s.leader()
	for _, node := range []int{4, 5} {
		link := fmt.Sprintf(`#links [data-replica="%s"][data-node="%d"]`, was, node)
		s.press(link, fmt.Sprintf("document.querySelector(%s).ariaPressed === 'true'", browser.Quote(link)))
	}
	s.ticking()
	was = s.leader()
	s.press("#replica-"+was+" [data-do=partition]", fmt.Sprintf(`document.querySelectorAll('#links [data-replica="%s"][aria-pressed=true]').length === 5`, was))
	s.took(was, "partition")
	s.Picture("demo-3-cut-off", false)
	s.mended()
	s.safe("a partition")
}

// 4. Most nodes are gone: with three of five nothing happens, with two nobody leads.
func (s *stage) mostNodes() {
	s.t.Helper()
	s.press("#node-1 [data-do=kill]", state("node-1", "dead"))
	s.press("#node-2 [data-do=freeze]", state("node-2", "frozen"))
	s.ticking()
	s.press("#node-3 [data-do=partition]", `document.querySelectorAll('#links [data-node="3"][aria-pressed=true]').length === 3`)
	s.WaitFor(s.patience, `document.getElementById("leader").dataset.leader === ""`, "nobody leads")
	s.Picture("demo-4-no-quorum", false)
	s.mended()
	s.leader()
	s.safe("an outage of most nodes")
}

// 5. A holder is paused: its late write is refused, and taken without the check.
func (s *stage) paused() {
	s.t.Helper()
	s.told("late")
	require.Positive(s.t, s.count("refused"), "the late write is refused")
	s.WaitFor(s.patience, `document.querySelector("#timeline [data-kind=write][data-end=refused]")`, "it is on the timeline")
	s.Picture("demo-5-late", false)
	s.mended()
	s.safe("a late write")

	s.press("#fence", `!document.getElementById("fence").checked`)
	s.told("late")
	require.Positive(s.t, s.count("accepted"), "the late write is taken")
	s.WaitFor(s.patience, `document.querySelector("#timeline [data-bad=true]")`, "it is on the timeline")
	s.Picture("demo-5-late-without-fencing", false)
	s.press("#fence", `document.getElementById("fence").checked`)
	s.mended()
}

// 6. Nodes lose their memory: nobody is granted the lease too early. Without the gate two hold it.
func (s *stage) forgetful() {
	s.t.Helper()
	s.told("amnesia")
	s.Picture("demo-6-amnesia", false)
	s.mended()
	require.Zero(s.t, s.count("overlaps")) // a tick may run twice if only those nodes have recorded it

	s.press("#gate", `!document.getElementById("gate").checked`)
	for range 5 { // on a busy machine the lease may have run out before another replica asks
		s.WaitFor(3*s.patience, `document.getElementById("story").dataset.story === "" && !document.getElementById("amnesia").disabled`)
		s.ticking()
		s.told("amnesia")
		if s.count("overlaps") > 0 {
			break
		}
	}
	require.Positive(s.t, s.count("overlaps"), "two hold the lease")
	s.WaitFor(s.patience, `document.querySelector("#timeline [data-bad=true]")`, "it is on the timeline")
	s.Picture("demo-6-amnesia-without-gate", false)
}
