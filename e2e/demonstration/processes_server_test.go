package demonstration

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
)

// slack is what a busy machine may add to a promised time.
const slack = 10 * time.Second

// Every button of the panel does what it says, with real processes; nothing runs twice and nothing
// overlaps. Of the two safeguards each one is missed when it is switched off.
func TestProcesses(t *testing.T) {
	t.Parallel()
	file := build(t, "quickstart")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	p := run(t, file, "-web", address)
	s := open(t, p.url, "processes")

	s.looks()
	t.Log(s.takeovers(slack))
	s.buttons()

	// The stories, with both safeguards on.
	s.told("deploy")
	s.safe("a rolling deploy")
	s.told("late")
	require.Positive(t, s.count("refused"), "the late write is refused")
	s.Wait(`document.querySelector("#timeline [data-kind=write][data-end=refused]")`, "it is on the timeline")
	s.Picture("demo-processes-late", false)
	s.mended()
	s.safe("a late write")

	// Without the fencing check the late write is taken.
	s.press("#fence", `!document.getElementById("fence").checked`)
	s.told("late")
	require.Positive(t, s.count("accepted"), "the late write is taken")
	s.Wait(`document.querySelector("#timeline [data-bad=true]")`, "it is on the timeline")
	s.Picture("demo-processes-late-without-fencing", false)
	s.press("#fence", `document.getElementById("fence").checked`)
	s.mended()

	// The cluster page, of the same replicas.
	s.Click("#cluster")
	s.Wait(`document.querySelectorAll("#elections tr[data-election]").length > 0`)
	s.Goto(p.url)
	s.ticking()

	// A page of another origin cannot press buttons.
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<!doctype html><title>elsewhere</title><link rel=icon href=data:,>`)
	}))
	t.Cleanup(stranger.Close)
	other := browser.New(t)
	other.Goto(stranger.URL)
	other.Exec(fmt.Sprintf(`fetch(%s, {method: "POST", mode: "no-cors", body: '{"do":"kill","replica":"a"}'}).finally(() => document.title = "sent")`, browser.Quote(p.url+"orders")))
	other.Wait(`document.title === "sent"`)
	other.TakeProblems()
	s.ticking()
	require.Equal(t, "running", browser.Value[string](s.Page, `document.getElementById("replica-a").dataset.state`))

	// The program ends: the page says so, and goes on with its successor.
	s.Exec("window.stays = true")
	require.NoError(t, p.Terminate(browser.Patience))
	s.Wait(`document.documentElement.dataset.connected === "false" && document.getElementById("notice").checkVisibility()`)
	s.Picture("demo-processes-gone", false)
	run(t, file, "-web", address)
	s.Wait(`window.stays && document.documentElement.dataset.connected === "true" && !document.getElementById("notice").checkVisibility()`)
	s.ticking()
	s.TakeProblems() // the browser tells of connections that were refused
}

// Without the restart gate two replicas hold the lease at the same time; with it none do.
func TestRestartGate(t *testing.T) {
	t.Parallel()
	s := open(t, run(t, build(t, "quickstart"), "-web", "127.0.0.1:0").url, "processes")
	s.told("amnesia")
	s.Picture("demo-processes-amnesia", false)
	s.mended()
	s.safe("nodes that lose their memory")

	s.press("#gate", `!document.getElementById("gate").checked`)
	s.WaitFor(2*browser.Patience, `document.getElementById("story").dataset.story === "" && !document.getElementById("amnesia").disabled`)
	s.ticking()
	s.told("amnesia")
	require.Positive(t, s.count("overlaps"), "two hold the lease")
	s.Wait(`document.querySelector("#timeline [data-bad=true]")`, "it is on the timeline")
	s.Picture("demo-processes-amnesia-without-gate", false)
}
