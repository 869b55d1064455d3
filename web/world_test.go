package web_test

import (
	"bytes"
	"context"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
	"github.com/tenure-dev/tenure/web"
)

// world is nodes in process, replicas with a real scheduler, and the page of another process.
type world struct {
	testing.TB
	fleet *redlocktest.Fleet
	q     *redlock.Quorum // of the page's process
	h     *web.Handler
	log   *safeBuffer
}

var quiet = slog.New(slog.DiscardHandler)

// safeBuffer is a log that goroutines write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// inBubble has a test see a world on fake time.
func inBubble(t *testing.T, nodes int, opts []web.Option, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{TB: t, fleet: redlocktest.StartPipes(t, nodes), log: &safeBuffer{}}
		w.q = w.quorum("page")
		w.h = w.handler(opts...)
		f(t, w)
	})
}

func (w *world) quorum(identity string, opts ...redlock.Option) *redlock.Quorum {
	q, err := redlock.Open(w.fleet.URLs(), append([]redlock.Option{
		redlock.WithClientOption(w.fleet.ClientOption), redlock.WithLogger(quiet), redlock.WithTTL(4 * time.Second), redlock.WithIdentity(identity),
	}, opts...)...)
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, q.Close()) })
	return q
}

func (w *world) handler(opts ...web.Option) *web.Handler {
	a, err := admin.New(w.q, admin.WithActor("page"), admin.WithLogger(quiet))
	require.NoError(w, err)
	h, err := web.New(a, append([]web.Option{web.WithLogger(slog.New(slog.NewTextHandler(w.log, nil)))}, opts...)...)
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, h.Close()) })
	return h
}

// job is a job of a replica.
type job struct {
	name string
	cron string // with seconds
	task func(context.Context) error
}

// takes is a task that takes so long, or until its context ends.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *world) replica(identity string, opts []scheduler.Option, jobs ...job) *scheduler.Scheduler {
	s, err := scheduler.New(w.quorum(identity), append([]scheduler.Option{scheduler.WithLogger(quiet)}, opts...)...)
	require.NoError(w, err)
	for _, j := range jobs {
		_, err := s.NewJob(gocron.CronJob(j.cron, true), gocron.NewTask(j.task), gocron.WithName(j.name))
		require.NoError(w, err, "%q", j.name)
	}
	s.Start()
	w.Cleanup(func() { _ = s.Shutdown() })
	return s
}

// serve has the Handler answer a request.
func (w *world) serve(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.h.ServeHTTP(answer, r)
	return answer
}

// get reads a page that is there.
func (w *world) get(path string) string {
	w.Helper()
	answer := w.serve(httptest.NewRequest(http.MethodGet, path, nil))
	require.Equal(w, http.StatusOK, answer.Code, "%s: %s", path, answer.Body)
	return answer.Body.String()
}

// post sends a form as a browser does from a page of the same origin.
func (w *world) post(path string, form url.Values, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, f := range change {
		f(r)
	}
	return w.serve(r)
}

// eventually polls until a page says something, on the bubble's clock or the world's.
func (w *world) eventually(path, text string) string {
	w.Helper()
	page := ""
	for range 600 {
		if page = w.get(path); strings.Contains(page, text) {
			return page
		}
		time.Sleep(100 * time.Millisecond) // until it asks again
	}
	require.Contains(w, page, text, path)
	return page
}

var anchor = regexp.MustCompile(`<a [^>]*href="([^"]*)"`)

// links are where the links of a page lead.
func links(page string) (all []string) {
	for _, m := range anchor.FindAllStringSubmatch(page, -1) {
		all = append(all, html.UnescapeString(m[1]))
	}
	return all
}

// attribute is the value of an attribute behind a place in a page.
func attribute(page, name string) string {
	m := regexp.MustCompile(` ` + name + `="([^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

var tags = regexp.MustCompile(`<[^>]*>`)

// textOf is what a page says, without its elements.
func textOf(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(page, ""))), " ")
}

// element is the first element of a page that begins like this, until the next end tag of its kind.
func element(page, begin, end string) string {
	_, rest, found := strings.Cut(page, begin)
	if !found {
		return ""
	}
	inside, _, _ := strings.Cut(rest, end)
	return begin + inside
}
