package demonstration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
)

// The same page without any server: the library, its nodes and its replicas run in the browser.
func TestInTheBrowserAlone(t *testing.T) {
	t.Parallel()
	p := run(t, build(t, "demo"), "-listen", "127.0.0.1:0", "-out", t.TempDir())
	s := open(t, p.url, "browser")
	s.looks()
	t.Log(s.takeovers(slack))
	s.buttons()
	for _, speed := range []string{"0.5", "2", "1"} {
		s.Choose("#speed", speed)
		s.ticking()
	}
	s.Choose("#speed", "0")
	s.Wait(`document.getElementById("speed").value === "0"`)
	ticks := s.count("ticks")
	s.Choose("#speed", "1")
	s.ticking()
	require.Greater(t, s.count("ticks"), ticks)
	s.told("deploy")
	s.safe("a rolling deploy")
	s.told("late")
	require.Positive(t, s.count("refused"), "the late write is refused")
	s.Picture("demo-browser-late", false)
	s.mended()
	s.told("amnesia")
	s.mended()
	s.safe("all stories")

	s.press("#fence", `!document.getElementById("fence").checked`)
	s.told("late")
	require.Positive(t, s.count("accepted"), "the late write is taken")
	s.press("#fence", `document.getElementById("fence").checked`)
	s.mended()
	overlaps := s.count("overlaps")
	s.press("#gate", `!document.getElementById("gate").checked`)
	s.WaitFor(2*browser.Patience, `document.getElementById("story").dataset.story === "" && !document.getElementById("amnesia").disabled`)
	s.ticking()
	s.told("amnesia")
	require.Greater(t, s.count("overlaps"), overlaps, "two hold the lease")
	s.Wait(`document.querySelector("#timeline [data-bad=true]")`, "it is on the timeline")
	s.Picture("demo-browser-amnesia-without-gate", false)
}
