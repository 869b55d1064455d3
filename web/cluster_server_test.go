package web_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/web"
)

const serverTTL = 2 * time.Second

func openOn(t testing.TB, fleet *valkeytest.Fleet, identity string) *redlock.Quorum {
	q, err := redlock.Open(fleet.URLs(), redlock.WithTTL(serverTTL), redlock.WithMaxTTL(serverTTL), redlock.WithNodeTimeout(serverTTL/4),
		redlock.WithClockSkew(time.Millisecond), redlock.WithIdentity(identity), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// What an operator sees and does on real servers: a leader, runs, an order over a browser's form, a
// node that hangs and one that is killed, said within seconds while the page answers within one.
func TestPageOnServers(t *testing.T) {
	t.Parallel()
	fleet := valkeytest.Start(t, 3)
	for _, identity := range []string{"a", "b"} {
		s, err := scheduler.New(openOn(t, fleet, identity), scheduler.WithElection("poller"), scheduler.WithLogger(quiet))
		require.NoError(t, err)
		_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func() {}), gocron.WithName("poll/<b>"))
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	a, err := admin.New(openOn(t, fleet, "page"), admin.WithLogger(quiet))
	require.NoError(t, err)
	h, err := web.New(a, web.WithLogger(quiet), web.WithActions(as("ann")))
	require.NoError(t, err)
	t.Cleanup(func() { _ = h.Close() })
	server := httptest.NewServer(http.StripPrefix("/tenure", h))
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = h.Close() })
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	t.Cleanup(client.CloseIdleConnections)
	get := func(path string) string {
		answer, err := client.Get(server.URL + "/tenure" + path)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return string(text)
	}
	says := func(path, text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(textOf(get(path)), text) }, patience, 50*time.Millisecond, "%s: %s", path, text)
	}
	says("/", "3 of 3 nodes vote; 1 more may fail. poller is led by ")
	says("/job?name=poll%2F%3Cb%3E", "every second")
	says("/api/v1/jobs", `"outcome":"ok"`)

	order := url.Values{"kind": {"pause"}, "job": {"poll/<b>"}, "reason": {"quiet, please"}}
	answer, err := client.PostForm(server.URL+"/tenure/api/v1/orders", order)
	require.NoError(t, err)
	var result struct {
		Result string `json:"result"`
		Text   string `json:"text"`
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&result))
	_ = answer.Body.Close()
	require.Equal(t, "done", result.Result, result.Text)
	says("/", "paused by ann: quiet, please")
	says("/orders", "quiet, please")

	require.NoError(t, fleet.Node(0).Freeze())
	frozen := time.Now()
	says("/", "2 of 3 nodes vote; none more may fail.")
	t.Logf("a frozen node was said after %v", time.Since(frozen).Round(time.Millisecond))
	require.NoError(t, fleet.Node(1).Kill())
	killed := time.Now()
	says("/", "1 of 3 nodes vote, and 2 are needed: nothing is granted.")
	t.Logf("a killed node was said after %v", time.Since(killed).Round(time.Millisecond))
	require.NoError(t, fleet.Node(2).Freeze())
	says("/nodes", "No node answers the process that serves this page.")
	for _, path := range pages {
		began := time.Now()
		get(path)
		t.Logf("%s without a node: %v", path, time.Since(began).Round(time.Millisecond))
	}
	require.NoError(t, fleet.Node(0).Thaw())
	require.NoError(t, fleet.Node(2).Thaw())
	says("/", "2 of 3 nodes vote")
}
