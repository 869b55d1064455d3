package health_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/health"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

const patience = time.Minute

// replica is a process with a Quorum on real servers, as a kubelet sees it.
type replica struct {
	q    *redlock.Quorum
	h    *health.Handler
	page *httptest.Server
}

func newReplica(t *testing.T, urls []string, opts ...redlock.Option) *replica {
	t.Helper()
	q, err := redlock.Open(urls, append([]redlock.Option{redlock.WithLogger(silent)}, opts...)...)
	require.NoError(t, err)
	r := &replica{q: q, h: handler(q)}
	r.page = httptest.NewServer(r.h)
	t.Cleanup(func() {
		r.page.Close()
		require.NoError(t, q.Close())
	})
	return r
}

// asks probes over the network, and returns the status and the text.
func (r *replica) asks(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := r.page.Client().Get(r.page.URL + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func (r *replica) ready(t *testing.T) bool {
	t.Helper()
	live, text := r.asks(t, "/livez")
	require.Equal(t, http.StatusOK, live, text)
	ready, _ := r.asks(t, "/readyz")
	return ready == http.StatusOK
}

// A replica that the servers do not admit never becomes ready, and its answer has no password in
// it.
func TestMisconfiguredReplicas(t *testing.T) {
	t.Parallel()
	fleet := valkeytest.Start(t, 5, valkeytest.WithAge(time.Hour), valkeytest.WithPassword("0pen-sesame"))
	list := fleet.URLs()[:3]
	well := newReplica(t, list)
	require.Eventually(t, func() bool { return well.ready(t) }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { // which has others know of its nodes
		_, err := well.q.TryAcquire(t.Context(), "key")
		return err == nil
	}, patience, 10*time.Millisecond)
	for name, test := range map[string]struct {
		urls   []string
		option redlock.Option
		reason string
	}{
		"another list": {fleet.URLs()[1:4], redlock.WithTTL(ttl), "another_list"},
		"a wrong password": {list, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
			o.Password = "0pen-barley"
		}), "noauth"},
		"no database": {list, redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
			o.SelectDB = 99
		}), "no_database"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplica(t, test.urls, test.option)
			var text string
			require.Eventually(t, func() bool {
				_, text = r.asks(t, "/readyz?verbose")
				return strings.Count(text, `"reason": "`+test.reason+`"`) == 3
			}, patience, 10*time.Millisecond, "%s", &text)
			require.False(t, r.ready(t), text)
			require.NotContains(t, text, "0pen")
			require.True(t, well.ready(t))
		})
	}
}
