package pages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/e2e/cluster"
)

// ttl is of all leases: long enough for a machine that is busy with other things.
const ttl = 8 * time.Second

// never is a schedule of which no tick comes while a test runs.
const never = "0 0 3 29 2 *"

// Names that a page must show as they are, and that must do nothing.
var hostile = []string{
	`<script>window.ran = 1; alert(1)</script>`,
	`"><img src=x onerror="window.ran = 2">`,
	`'-alert(3)-' {{.}} {a} %s &amp; <b>`,
	"\u202egnp.exe\u2066\u05d0\u05d1",
	strings.Repeat("ж", 500),
	`javascript:window.ran=4`,
	"../../a?b=c#d&e=f",
}

// world is a cluster in which everything happens that pages have a place for.
type world struct {
	*cluster.Cluster
	t     testing.TB
	admin *admin.Client
	site  *cluster.Site
}

// jobs are the jobs of a world's replicas.
func jobs() []cluster.Job {
	jobs := []cluster.Job{
		{Name: "report", Cron: "* * * * * *", Takes: 200 * time.Millisecond},
		{Name: "import", Cron: "*/2 * * * * *", Takes: 300 * time.Millisecond, Fails: "the file has no lines", Every: 2},
		{Name: "backup", Cron: never, Takes: time.Hour},
		{Name: "invoices", Cron: "0 30 4 1 * *"},
		{Name: "mail", Cron: "* * * * * *"},
	}
	for _, name := range hostile {
		jobs = append(jobs, cluster.Job{Name: name, Cron: "*/3 * * * * *", Fails: name})
	}
	return jobs
}

// newWorld starts servers, three replicas and the pages with orders.
func newWorld(t testing.TB) *world {
	t.Helper()
	c := cluster.Start(t, 3, ttl)
	w := &world{Cluster: c, t: t}
	for _, identity := range []string{"a", "b", "<i>c</i>"} {
		c.Replica(identity, cluster.Replica{Jobs: jobs(), Election: "poller"})
	}
	q := c.Quorum("operator")
	w.admin = c.Admin(q)
	w.site = c.Serve(w.admin)
	w.eventually("all replicas are known", func(ctx context.Context) bool {
		all, err := w.admin.Replicas(ctx)
		return err == nil && len(all) == 3
	})
	w.eventually("somebody leads", func(ctx context.Context) bool { return w.leader(ctx) != "" })
	return w
}

// eventually waits for something that is no matter of a page.
func (w *world) eventually(why string, is func(ctx context.Context) bool) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return is(ctx)
	}, browser.Patience, 20*time.Millisecond, why)
}

func (w *world) leader(ctx context.Context) string {
	e, err := w.admin.Election(ctx, "poller")
	if err != nil || e.Leader == nil {
		return ""
	}
	return e.Leader.Identity
}

// pause pauses a job. A pause that did not get a quorum in time is given again.
func (w *world) pause(job, reason string) {
	w.t.Helper()
	w.eventually("it is paused", func(ctx context.Context) bool {
		_, err := w.admin.Pause(ctx, admin.Job(job), admin.PauseOptions{Reason: reason})
		return err == nil
	})
}

// runNow has a job be run.
func (w *world) runNow(job string) {
	w.t.Helper()
	w.eventually("it runs", func(ctx context.Context) bool {
		if _, err := w.admin.Running(ctx, job); err == nil {
			return true
		}
		_, err := w.admin.RunNow(ctx, job, "for the test")
		return err == nil
	})
}

// running is the run of a job that goes on.
func (w *world) running(job string) (run admin.Run) {
	w.t.Helper()
	w.eventually(job+" runs", func(ctx context.Context) (is bool) {
		var err error
		run, err = w.admin.Running(ctx, job)
		return err == nil && run.FencingToken > 0
	})
	return run
}

// order is the newest order of a kind, once it has a result.
func (w *world) order(kind admin.OrderKind) (order admin.Order) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("an order %s is told", kind), func(ctx context.Context) bool {
		all, err := w.admin.Orders(ctx, 100)
		for _, o := range all {
			if err == nil && o.Kind == kind && o.Result != "" && o.Result != "taken" {
				order = o
				return true
			}
		}
		return false
	})
	return order
}

// notPaused fails the test if something pauses the job.
func (w *world) notPaused(target admin.Target) {
	w.t.Helper()
	w.eventually("it is read", func(ctx context.Context) bool {
		is, err := w.admin.Paused(ctx, target)
		require.False(w.t, err == nil, "%+v", is)
		return errors.Is(err, admin.ErrNotPaused)
	})
}

// row is the selector of a job's row.
func row(job string) string { return "tr[data-job=" + browser.Quote(job) + "]" }

// live waits until the page follows events.
func live(p *browser.Page) { p.Wait(`document.querySelector("#state").dataset.state === "live"`) }
