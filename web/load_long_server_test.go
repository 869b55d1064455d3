//go:build long

package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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
func underLoad(tb testing.TB) *httptest.Server {
	fleet := valkeytest.Start(tb, 3)
	const ttl = 2 * time.Second
	q, err := redlock.Open(fleet.URLs(), redlock.WithTTL(ttl), redlock.WithMaxTTL(ttl), redlock.WithNodeTimeout(ttl/4),
		redlock.WithClockSkew(time.Millisecond), redlock.WithIdentity("page"), redlock.WithLogger(quiet))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, q.Close()) })
	require.Eventually(tb, func() bool { return q.Healthy() == nil }, patience, 20*time.Millisecond)
	fill(tb, q, loadJobs, loadReplicas)
	a, err := admin.New(q, admin.WithLogger(quiet))
	require.NoError(tb, err)
	h, err := web.New(a, web.WithLogger(quiet))
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, h.Close()) })
	server := httptest.NewServer(h)
	tb.Cleanup(server.Close)
	return server
}

// With a thousand jobs and a hundred replicas pages answer at once. That all readers together cost
// what one does is for TestNothingIsReadForNobody and TestOpenPagesShareReads.
func TestLoad(t *testing.T) {
	server := underLoad(t)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10}}
	t.Cleanup(client.CloseIdleConnections)
	page := func(path string) (text []byte, took time.Duration) {
		began := time.Now()
		answer, err := client.Get(server.URL + path)
		require.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		require.Equal(t, http.StatusOK, answer.StatusCode)
		text, err = io.ReadAll(answer.Body)
		require.NoError(t, err)
		return text, time.Since(began)
	}
	require.Eventually(t, func() bool {
		var doc struct{ Jobs struct{ Total int } }
		text, _ := page("/api/v1/overview")
		require.NoError(t, json.Unmarshal(text, &doc))
		return doc.Jobs.Total == loadJobs
	}, 2*patience, 100*time.Millisecond, "all jobs are shown")
	var took []time.Duration
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	var readers sync.WaitGroup
	var mu sync.Mutex
	for i := range 4 {
		readers.Go(func() {
			paths := []string{"/", "/jobs", fmt.Sprintf("/jobs?page=%d", i+2), "/job?name=job-0001", "/nodes", "/elections", "/orders"}
			for n := 0; ctx.Err() == nil; n++ {
				_, d := page(paths[n%len(paths)])
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
				time.Sleep(20 * time.Millisecond) // four readers are what fifty pages ask for, twice a second each
			}
		})
	}
	readers.Wait()
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d pages: median %v, 99th of a hundred %v", len(took), median.Round(100*time.Microsecond), worst.Round(time.Millisecond))
	require.Less(t, median, time.Second, "generous: 200 ms on a machine that does nothing else")
}
