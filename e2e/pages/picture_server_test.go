package pages

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/e2e/cluster"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/web"
)

// picture is where the picture of README.md is written to, besides browser.Directory.
var picture = flag.String("picture", "", "PNG `file` to write the picture of the README to, from the top of the repository: docs/web.png")

// mostPicture is how large the picture of the README may be.
const mostPicture = 300 << 10

// history tells of runs of the last hour as replicas do: a picture needs more than a test has time
// for.
func history(t *testing.T, q *redlock.Quorum, replicas []string, job string, every, takes time.Duration, outcome func(ago time.Duration) (outcome, text string)) {
	now := time.Now()
	for at := now.Add(-time.Hour).Truncate(every).Add(every); at.Before(now.Add(-time.Minute)); at = at.Add(every) {
		r := bulletin.Run{Job: job, By: replicas[int(at.Unix()/int64(every.Seconds()))%len(replicas)], Tick: at.UnixMilli(), Began: at.UnixMilli() + 7, Took: takes.Microseconds(), Attempt: 1, Token: uint64(at.Unix())}
		r.Outcome, r.Error = outcome(now.Sub(at))
		entries := r.Entries("job/" + job)
		for i := range entries {
			entries[i].At = at
		}
		require.NoError(t, board.Of(q).Post(t.Context(), nil, entries...))
	}
}

// The picture of the README: the overview of a service that is busy, in which a job fails, and of
// which a replica has died that alone had another one.
func TestPicture(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, 5, 10*time.Second)
	ok := func(time.Duration) (string, string) { return bulletin.OK, "" }
	since := func(when time.Duration, outcome, text string) func(time.Duration) (string, string) {
		return func(ago time.Duration) (string, string) {
			if ago < when {
				return outcome, text
			}
			return bulletin.OK, ""
		}
	}
	const refused = "orders: the partner's API answers 503"
	var jobs []cluster.Job
	shop := []struct {
		job     cluster.Job
		every   time.Duration // in the last hour
		outcome func(time.Duration) (string, string)
	}{
		{cluster.Job{Name: "import-orders", Cron: "0 */5 * * * *", Takes: 20 * time.Second, Fails: refused}, 5 * time.Minute, since(33*time.Minute, "failed", refused)},
		{cluster.Job{Name: "charge-cards", Cron: "0 */2 * * * *", Takes: 9 * time.Second}, 2 * time.Minute, ok},
		{cluster.Job{Name: "index-products", Cron: never, Takes: time.Hour}, 30 * time.Minute, ok},
		{cluster.Job{Name: "send-newsletter", Cron: "0 */10 * * * *", Takes: time.Second}, 10 * time.Minute, ok},
		{cluster.Job{Name: "expire-carts", Cron: "0 * * * * *", Takes: time.Second}, time.Minute, ok},
		{cluster.Job{Name: "resize-images", Cron: "*/30 * * * * *", Takes: time.Second}, 30 * time.Second, ok},
		{cluster.Job{Name: "sync-stock", Cron: "0 */15 * * * *", Takes: 4 * time.Minute}, 15 * time.Minute, ok},
		{cluster.Job{Name: "close-month", Cron: "0 30 4 1 * *", Takes: time.Second}, 0, nil},
	}
	for _, s := range shop {
		jobs = append(jobs, s.job)
	}
	replicas := []string{"shop-6d8f9-a", "shop-6d8f9-b", "shop-6d8f9-c"}
	for _, identity := range replicas {
		c.Replica(identity, cluster.Replica{Jobs: jobs, Election: "webhook-sender"})
	}
	rates := c.Replica("rates-7c4b5-a", cluster.Replica{Jobs: []cluster.Job{{Name: "fetch-rates", Cron: "*/20 * * * * *", Takes: time.Second}}})
	q := c.Quorum("operator")
	w := &world{Cluster: c, t: t, admin: c.Admin(q)}
	w.site = c.Serve(w.admin, web.WithTitle("shop"))
	w.eventually("all jobs are known, and the last one has run", func(ctx context.Context) bool {
		j, err := w.admin.Job(ctx, "fetch-rates")
		return err == nil && j.Last != nil
	})
	for _, s := range shop {
		if s.every > 0 {
			history(t, q, replicas, s.job.Name, s.every, s.job.Takes%time.Hour+time.Second, s.outcome)
		}
	}
	hour := time.Now().Add(-time.Hour)
	for _, term := range []bulletin.Term{
		{Term: 1, By: replicas[1], Event: bulletin.Elected, At: hour.UnixMilli()},
		{Term: 2, By: replicas[0], Event: bulletin.Elected, At: hour.Add(26 * time.Minute).UnixMilli(), Vacant: 9000},
		{Term: 2, By: replicas[0], Event: "resigned", Reason: "shutdown", At: time.Now().Add(-2 * time.Minute).UnixMilli()},
	} {
		entry, _ := term.Entry("webhook-sender")
		entry.At = time.UnixMilli(term.At)
		require.NoError(t, board.Of(q).Post(t.Context(), nil, entry))
	}
	before := bulletin.Process{Process: "before", Identity: replicas[0]} // which has seen nodes for an hour
	for i, n := range w.admin.Look(t.Context()) {
		seen := bulletin.NodeSeen{Node: n.Node}
		seen.See(true, "", hour.UnixMilli())
		if i == 3 {
			seen.See(false, "timeout", hour.Add(38*time.Minute).UnixMilli())
			seen.See(false, "quarantined", hour.Add(39*time.Minute).UnixMilli())
			seen.See(true, "", hour.Add(40*time.Minute).UnixMilli())
		}
		before.Nodes = append(before.Nodes, seen)
	}
	card := before.Card()
	card.Lifetime = time.Hour
	require.NoError(t, board.Of(q).Post(t.Context(), []bulletin.Card{card}))
	var err error
	w.admin, err = w.admin.As("ann")
	require.NoError(t, err)
	w.pause("send-newsletter", "the provider is down")
	w.runNow("index-products")
	require.NoError(t, rates.Kill())

	p := browser.New(t, browser.Viewport(1100, 620))
	p.Goto(w.site.URL)
	live(p)
	p.WaitFor(2*browser.Patience, `document.querySelector("#todo li[data-job=import-orders]") && document.querySelector("#todo li[data-job=fetch-rates]") && document.querySelector("#wait li[data-job]") &&
		document.querySelector("#lanes li[data-job=index-products][data-token]") && document.querySelector("#lanes li[data-election]").dataset.leader !== ""`, "there is something to be seen")
	p.Picture("web", false)
	png := p.PNG(false)
	require.Less(t, len(png), mostPicture)
	if *picture != "" {
		require.NoError(t, os.WriteFile(filepath.Join(browser.Root(t), *picture), png, 0o644))
	}
}
