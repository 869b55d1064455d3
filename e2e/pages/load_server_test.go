package pages

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/e2e/cluster"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

const (
	loadReplicas = 100
	loadJobs     = 1000
	loadPages    = 50
	// loadOn is on how many replicas each job is.
	loadOn = 2
	// readEvery is how often package web reads all jobs, at most.
	readEvery = 3 * time.Second
	// loadTime is for how long it is counted.
	loadTime = 8 * time.Second
)

// crowd starts replicas in this process, each with a Quorum of its own. Two of a hundred jobs are
// due every 5 s, the others are not.
func crowd(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var work sync.WaitGroup
	each := func(do func(i int)) {
		for i := range loadReplicas {
			work.Go(func() { do(i) })
		}
		work.Wait()
	}
	quorums, schedulers := make([]*redlock.Quorum, loadReplicas), make([]*scheduler.Scheduler, loadReplicas)
	each(func(i int) {
		q, err := cluster.Open(c.Fleet.URLs(), fmt.Sprintf("replica-%03d", i), c.TTL)
		if !assert.NoError(t, err) {
			return
		}
		s, err := scheduler.New(q, scheduler.WithLogger(quiet))
		if !assert.NoError(t, err) {
			return
		}
		for j := range loadJobs {
			if (j-i+loadJobs)%loadReplicas >= loadOn { // replica i has those of i and i+1
				continue
			}
			cron := never
			if j%50 == 10 {
				cron = "*/5 * * * * *"
			}
			_, err := s.NewJob(gocron.CronJob(cron, true), gocron.NewTask(func() {}), gocron.WithName(fmt.Sprintf("job-%04d", j)))
			assert.NoError(t, err)
		}
		s.Start()
		quorums[i], schedulers[i] = q, s
	})
	t.Cleanup(func() {
		each(func(i int) {
			if schedulers[i] != nil {
				assert.NoError(t, schedulers[i].Shutdown())
			}
			if quorums[i] != nil {
				assert.NoError(t, quorums[i].Close())
			}
		})
	})
}

// reader is what an open page is to the server: a stream of events, and a read for each change.
type reader struct {
	mu    sync.Mutex
	took  []time.Duration // guarded by mu; each read
	floor []time.Duration // guarded by mu; each read of a file right after it, for which nothing is done
	bytes int64           // guarded by mu
	// failed are streams that were cut because this process did not read in time, and worse:
	// guarded by mu
	failed []error
}

func (r *reader) follow(ctx context.Context, client *http.Client, site, page string) error {
	stream, err := get(ctx, client, site+"events")
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		return fmt.Errorf("the stream of events: %s", stream.Status)
	}
	lines := bufio.NewScanner(stream.Body)
	for lines.Scan() {
		if lines.Text() != "event: change" {
			continue
		}
		began := time.Now()
		answer, err := get(ctx, client, site+page)
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s, %v", page, answer.Status, err)
		}
		took := time.Since(began)
		began = time.Now()
		if answer, err = get(ctx, client, site+"assets/icon.svg"); err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.took, r.floor = append(r.took, took), append(r.floor, time.Since(began))
		r.bytes += n
		r.mu.Unlock()
	}
	return lines.Err()
}

func get(ctx context.Context, client *http.Client, address string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(r)
}

// commands is how many commands all nodes have carried out, without those that ask for that.
func commands(t *testing.T, c *cluster.Cluster) (sum int64) {
	t.Helper()
	for _, n := range c.Fleet.Nodes() {
		for name, calls := range n.CommandStats(t) {
			if name != "info" && name != "ping" && name != "hello" {
				sum += calls
			}
		}
	}
	return sum
}

// rate counts the commands of all nodes for a while, by the second.
func rate(t *testing.T, c *cluster.Cluster) float64 {
	t.Helper()
	before, began := commands(t, c), time.Now()
	<-time.After(loadTime) // what is measured
	return float64(commands(t, c)-before) / time.Since(began).Seconds()
}

// heap is what this process uses, which is the server, the replicas and the readers.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// handlesEvents is in the stack of a goroutine that serves events.
const handlesEvents = "web.(*Handler).events("

// stacks are those of all goroutines of this process.
func stacks() string {
	text := make([]byte, 64<<20)
	return string(text[:runtime.Stack(text, true)])
}

// streams is how many goroutines of this process serve events.
func streams() int { return strings.Count(stacks(), handlesEvents) }

// A thousand jobs on a hundred replicas, and fifty pages that are open: a page answers at once, the
// nodes are read as for one page, and memory has bounds.
func TestLoad(t *testing.T) {
	c := cluster.Start(t, 3, 10*time.Second)
	crowd(t, c)
	q := c.Quorum("operator")
	a := c.Admin(q)
	require.Eventually(t, func() bool {
		all, err := a.Replicas(t.Context())
		if err != nil || len(all) != loadReplicas {
			return false
		}
		known := 0
		for _, err := range a.Jobs(t.Context()) {
			if err != nil {
				return false
			}
			known++
		}
		return known == loadJobs
	}, 2*browser.Patience, time.Second, "all replicas and jobs are known")
	none := rate(t, c)
	before, began := commands(t, c), time.Now()
	for _, err := range a.Jobs(t.Context()) {
		require.NoError(t, err)
	}
	reading := time.Since(began)
	whole := float64(commands(t, c)-before) - none*reading.Seconds()

	site := c.Serve(a)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * loadPages}}
	paths := []string{"", "jobs", "jobs?page=3", "job?name=job-0010", "elections", "nodes", "orders"}
	var readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	var all reader
	open := func(n int) {
		for i := range n {
			readers.Go(func() {
				for ctx.Err() == nil { // a stream has an end, and a browser asks for another one
					if err := all.follow(ctx, client, site.URL, paths[i%len(paths)]); err != nil && ctx.Err() == nil {
						all.mu.Lock()
						all.failed = append(all.failed, err)
						all.mu.Unlock()
					}
				}
			})
		}
	}
	settle := func() { // until pages have been read for a while
		all.mu.Lock()
		n := len(all.took)
		all.mu.Unlock()
		require.Eventually(t, func() bool {
			all.mu.Lock()
			defer all.mu.Unlock()
			return len(all.took) > n+20
		}, browser.Patience, 50*time.Millisecond)
	}
	open(1)
	settle()
	memory := heap()
	one := rate(t, c)
	open(loadPages - 2)
	p := browser.New(t)
	p.Goto(site.Page("jobs"))
	live(p)
	settle()
	require.GreaterOrEqual(t, streams(), loadPages-1)
	all.mu.Lock()
	all.took, all.floor, all.bytes = nil, nil, 0
	all.mu.Unlock()
	fifty := rate(t, c)
	more := heap() - memory
	all.mu.Lock()
	took, floor, bytes, failed := slices.Clone(all.took), slices.Clone(all.floor), all.bytes, slices.Clone(all.failed)
	all.mu.Unlock()
	slices.Sort(took)
	slices.Sort(floor)
	p.Picture("load-jobs", false)
	inBrowser := quickest(p, site.Page("jobs"))

	t.Logf("%d jobs, %d replicas, %d pages: %d reads in %v, %.1f MiB; the median takes %v, 99 of 100 at most %v, the longest %v; a file %v; in the browser %v",
		loadJobs, loadReplicas, loadPages, len(took), loadTime, float64(bytes)/(1<<20), took[len(took)/2], took[len(took)*99/100], took[len(took)-1], floor[len(floor)/2], inBrowser)
	t.Logf("commands a second on all nodes: %.0f without a page, %.0f more for one, %.0f more for %d; to read all jobs once takes %.0f and %v, which is %.0f a second for a page",
		none, one-none, fifty-none, loadPages, whole, reading, whole/readEvery.Seconds())
	t.Logf("memory for %d more pages and their readers: %.1f MiB", loadPages-1, more)
	require.Less(t, more, 500.0)
	if len(failed) > 0 {
		t.Logf("%d streams or reads failed, the first: %v", len(failed), failed[0])
	}
	require.Less(t, len(failed), loadPages/5, "pages are served")
	// The replicas and the readers are on this machine too, and a page waits until it gets round to
	// all of them. What has to be read for it takes longer, as long as nobody else works: so it was
	// read before.
	require.Less(t, took[len(took)/2], reading)
	// One page has all jobs be read every so often, and less often where that takes long: what one
	// page costs at most is what fifty may cost.
	require.Less(t, fifty-none, 1.5*whole/readEvery.Seconds()+0.3*none+100, "nodes pay for one page")

	cancel()
	readers.Wait()
	client.CloseIdleConnections()
	p.Close() // a page that is left may be kept as it is, for a way back, and its stream for its lifetime
	if !assert.Eventually(t, func() bool { return streams() == 0 }, browser.Patience, 50*time.Millisecond, "streams leave no goroutine behind") {
		for _, stack := range strings.Split(stacks(), "\n\n") {
			if strings.Contains(stack, handlesEvents) {
				t.Log(stack)
			}
		}
		t.FailNow()
	}
	left := heap() - memory
	t.Logf("memory when they are closed: %.1f MiB more", left)
	require.Less(t, left, 32.0)
}
