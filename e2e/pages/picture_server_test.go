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
)

// picture is where the picture of README.md is written to, besides browser.Directory.
var picture = flag.String("picture", "", "PNG `file` to write the picture of the README to, from the top of the repository: docs/web.png")

// mostPicture is how large the picture of the README may be.
const mostPicture = 300 << 10

// The picture of the README: the overview of a service that is busy, of which a replica has died
// that alone had a job.
func TestPicture(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, 5, 10*time.Second)
	shop := []cluster.Job{
		{Name: "charge-cards", Cron: "*/2 * * * * *", Takes: 900 * time.Millisecond},
		{Name: "index-products", Cron: "*/5 * * * * *", Takes: 3 * time.Second},
		{Name: "import-orders", Cron: "*/3 * * * * *", Takes: 400 * time.Millisecond, Fails: "orders: the partner's API answers 503", Every: 2},
		{Name: "send-newsletter", Cron: "*/10 * * * * *", Takes: time.Second},
		{Name: "nightly-report", Cron: "0 0 3 * * *", Takes: time.Second},
		{Name: "close-month", Cron: "0 30 4 1 * *", Takes: time.Second},
	}
	for _, identity := range []string{"shop-6d8f9-a", "shop-6d8f9-b", "shop-6d8f9-c"} {
		c.Replica(identity, cluster.Replica{Jobs: shop, Election: "webhook-sender"})
	}
	rates := c.Replica("rates-7c4b5-a", cluster.Replica{Jobs: []cluster.Job{{Name: "fetch-rates", Cron: "*/15 * * * * *", Takes: time.Second}}, Election: "rates-stream"})
	w := &world{Cluster: c, t: t, admin: c.Admin(c.Quorum("operator"))}
	w.site = c.Serve(w.admin)
	var err error
	w.eventually("all jobs are known, and the last one has run", func(ctx context.Context) bool {
		j, err := w.admin.Job(ctx, "fetch-rates")
		return err == nil && j.Last != nil
	})
	w.admin, err = w.admin.As("ann")
	require.NoError(t, err)
	w.pause("send-newsletter", "the provider is down")
	require.NoError(t, rates.Kill())

	p := browser.New(t, browser.Viewport(1100, 570))
	p.Goto(w.site.URL)
	live(p)
	p.WaitFor(2*browser.Patience, `document.querySelector("#late tr[data-job=fetch-rates]") && document.querySelector("#running tr[data-job]") && document.querySelector("#paused tr[data-job]") &&
		document.querySelector("tr[data-election=webhook-sender]").dataset.leader !== ""`, "there is something to be seen")
	p.Picture("web", false)
	png := p.PNG(false)
	require.Less(t, len(png), mostPicture)
	if *picture != "" {
		require.NoError(t, os.WriteFile(filepath.Join(browser.Root(t), *picture), png, 0o644))
	}
}
