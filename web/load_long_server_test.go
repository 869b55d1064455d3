//go:build long

package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/web"
)

const (
	loadJobs     = 1000
	loadReplicas = 100
	loadStreams  = 50
)

// fill tells the nodes of so many jobs and replicas, each job with twenty runs.
func fill(tb testing.TB, q *redlock.Quorum, jobs, replicas int) {
	board := board.Of(q)
	post := func(cards []bulletin.Card, entries []bulletin.Entry) {
		require.Eventually(tb, func() bool {
			err := board.Post(tb.Context(), cards, entries...)
			return err == nil
		}, patience, 10*time.Millisecond)
	}
	var cards []bulletin.Card
	for i := range jobs {
		name := fmt.Sprintf("job-%04d", i)
		card, ok := bulletin.Job{Job: name, Key: "job/" + name, Schedule: "0 3 * * *", Zone: "UTC", By: "a", Delivery: "at most once", Next: time.Now().Add(time.Hour).UnixMilli(), Orders: true}.Card()
		require.True(tb, ok)
		cards = append(cards, card)
		var runs []bulletin.Entry
		for n := range 20 {
			run, ok := bulletin.Run{Job: name, By: "a", Tick: 1e12, Began: time.Now().Add(-time.Hour).UnixMilli(), Took: int64(n) * 1000, Outcome: bulletin.OK, Attempt: 1, Token: uint64(n + 1)}.Entry("job/" + name)
			require.True(tb, ok)
			runs = append(runs, run)
		}
		post(nil, runs)
	}
	for i := range replicas {
		var nodes []map[string]any
		for _, n := range q.Nodes(tb.Context()) {
			nodes = append(nodes, map[string]any{"node": n.Node, "votes": true})
		}
		text, err := json.Marshal(map[string]any{
			"v": 1, "identity": fmt.Sprintf("replica-%03d", i), "host": "host", "program": "example.com/service", "began": 1e12, "nodes": nodes,
			"elections": []map[string]any{{"election": "poller", "identity": "x"}}, "jobs": []string{"job-0001", "job-0002"},
		})
		require.NoError(tb, err)
		cards = append(cards, bulletin.Card{Kind: bulletin.Processes, ID: fmt.Sprint(i), Text: string(text), Lifetime: time.Hour})
	}
	for batch := range slices.Chunk(cards, 50) {
		post(batch, nil)
	}
}

// underLoad is a page of that, on three real servers.
func underLoad(tb testing.TB, opts ...web.Option) (fleet *valkeytest.Fleet, h *web.Handler) {
	fleet = valkeytest.Start(tb, 3)
	const ttl = 2 * time.Second
	q, err := redlock.Open(fleet.URLs(), redlock.WithTTL(ttl), redlock.WithMaxTTL(ttl), redlock.WithNodeTimeout(ttl/4),
		redlock.WithClockSkew(time.Millisecond), redlock.WithIdentity("page"), redlock.WithLogger(quiet))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, q.Close()) })
	require.Eventually(tb, func() bool { return q.Healthy() == nil }, patience, 20*time.Millisecond)
	fill(tb, q, loadJobs, loadReplicas)
	a, err := admin.New(q, admin.WithLogger(quiet))
	require.NoError(tb, err)
	h, err = web.New(a, append([]web.Option{web.WithLogger(quiet)}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, h.Close()) })
	return fleet, h
}

// commands are how many a server has run.
func commands(t *testing.T, n *valkeytest.Node) (count int) {
	t.Helper()
	info, err := n.Client().Do(t.Context(), n.Client().B().Info().Section("stats").Build()).ToString()
	require.NoError(t, err)
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	_, err = fmt.Sscan(rest, &count)
	require.NoError(t, err)
	return count
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A thousand jobs, a hundred replicas and fifty streams: pages answer at once, and the nodes pay
// for one. The bound is generous, for a machine that does much else.
func TestLoad(t *testing.T) {
	fleet, h := underLoad(t, web.WithStreams(loadStreams, time.Minute))
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = h.Close() })
	before := heap()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10}}
	t.Cleanup(client.CloseIdleConnections)
	page := func(path string) time.Duration {
		began := time.Now()
		answer, err := client.Get(server.URL + path)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		require.Equal(t, http.StatusOK, answer.StatusCode)
		var doc struct {
			Jobs struct{ Total int }
		}
		if path == "/api/v1/overview" {
			require.NoError(t, json.NewDecoder(answer.Body).Decode(&doc))
			if doc.Jobs.Total < loadJobs {
				return 0
			}
		}
		return time.Since(began)
	}
	began := time.Now()
	require.Eventually(t, func() bool { return page("/api/v1/overview") > 0 }, 2*patience, 100*time.Millisecond, "all jobs are shown")
	t.Logf("%d jobs were read after %v", loadJobs, time.Since(began).Round(time.Millisecond))

	// what the nodes pay in so long, with one page
	const while = 5 * time.Second
	cost := func(enough int) int {
		least := math.MaxInt // all jobs are read from time to time, on a busy machine for longer than that takes
		for n := 0; n < 3 || n < 12 && least >= enough; n++ {
			from := commands(t, fleet.Node(0))
			time.Sleep(while) // it is what is measured
			least = min(least, commands(t, fleet.Node(0))-from)
		}
		return least
	}
	one := follow(t, server.URL+"/events")
	one.until(t, "change")
	alone := cost(math.MaxInt)
	for range loadStreams - 1 {
		follow(t, server.URL+"/events")
	}
	var took []time.Duration
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	var mu sync.Mutex
	for i := range 4 {
		readers.Go(func() {
			paths := []string{"/", "/jobs", fmt.Sprintf("/jobs?page=%d", i+2), "/job?name=job-0001", "/nodes", "/elections", "/orders"}
			for n := 0; ctx.Err() == nil; n++ {
				d := page(paths[n%len(paths)])
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
				time.Sleep(time.Second / loadStreams) // four readers are what fifty pages ask for, twice a second each
			}
		})
	}
	most := 2*alone + 100
	together := cost(most)
	cancel()
	readers.Wait()
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d pages: median %v, 99th of a hundred %v", len(took), median.Round(100*time.Microsecond), worst.Round(time.Millisecond))
	t.Logf("commands to a node in %v: %d for one page, %d for %d", while, alone, together, loadStreams)
	t.Logf("heap: %d kB", (heap()-before)/1000)
	require.Less(t, median, time.Second, "generous: 200 ms on a machine that does nothing else")
	require.Less(t, heap()-before, int64(64<<20))
	// A page of a job asks once a second for it; the rest is what one page costs, on a machine that
	// is slower with more to do.
	require.Less(t, together, most)
}
