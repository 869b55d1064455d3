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

// Every button of the panel does what it says, with real processes, and the six incidents are as
// docs/start.md tells them: nothing runs twice and nothing overlaps. Each of the two safeguards is
// missed when it is switched off.
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
	s.buttons()
	s.incidents()

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
	other.Tolerate("403")
	other.Tolerate("net::ERR_")
	other.Goto(stranger.URL)
	other.Exec(fmt.Sprintf(`fetch(%s, {method: "POST", mode: "no-cors", body: '{"do":"kill","replica":"a"}'}).finally(() => document.title = "sent")`, browser.Quote(p.url+"orders")))
	other.Wait(`document.title === "sent"`)
	s.ticking()
	require.Equal(t, "running", browser.Value[string](s.Page, `document.getElementById("replica-a").dataset.state`))

	// The program ends: the page says so, and goes on with its successor.
	s.Exec("window.stays = true")
	s.Tolerate("net::ERR_")
	require.NoError(t, p.Terminate(browser.Patience))
	s.Wait(`document.documentElement.dataset.connected === "false" && document.getElementById("notice").checkVisibility()`)
	s.Picture("demo-processes-gone", false)
	run(t, file, "-web", address)
	s.Wait(`window.stays && document.documentElement.dataset.connected === "true" && !document.getElementById("notice").checkVisibility()`)
	s.ticking()
}
