package pages

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/e2e/cluster"
	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// said waits until an element of the page has a text.
func said(p *browser.Page, selector, pattern string) {
	p.WaitFor(2*browser.Patience, `new RegExp(`+browser.Quote(pattern)+`).test(document.querySelector(`+browser.Quote(selector)+`)?.textContent)`, pattern)
}

// A replica is killed in a run, and another one is refused for its list of nodes. Both are to be
// seen by those who look from elsewhere.
func TestWhatHappenedElsewhere(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, 3, storyTTL)
	does := cluster.Replica{Jobs: []cluster.Job{{Name: "backup", Cron: "*/5 * * * * *", Takes: time.Hour}}}
	replicas := map[string]*child.Replica{"a": c.Replica("a", does), "b": c.Replica("b", does)}
	w := &world{Cluster: c, t: t, admin: c.Admin(c.Quorum("operator"))}
	w.site = c.Serve(w.admin)
	killed := w.running("backup")
	p := browser.New(t)
	p.Goto(w.site.URL)
	live(p)
	require.NoError(t, replicas[killed.Replica].Kill())

	said(p, `#todo li[data-job=backup]`, "cut short.*"+killed.Replica+" was killed, or lost the lease")
	p.Picture("killed-run", true)
	p.Click(`#todo li[data-job=backup] a[href^=run]`)
	said(p, "main", "Its replica was killed, or lost the lease. What it had done is not known.")
	said(p, "#facts", "Replica"+killed.Replica)
	p.Picture("killed-run-of", true)
	p.Usable("a run that was cut short")

	other, err := redlock.Open(c.Fleet.URLs()[:2], redlock.WithPrefix("e2e"), redlock.WithIdentity("other"), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	_, err = other.TryAcquire(t.Context(), "key")
	require.Error(t, err)
	p.Goto(w.site.URL)
	said(p, "#wait", "warning.*refused")
	p.Picture("refused-replica", true)
}

// A certificate that expires ends no connection in use: nodes vote, and the page says what will
// fail, and why. It is the client's clock that moves on here.
func TestExpiredCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, secret := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	server := httptest.NewTLSServer(nil) // for its certificate, which names 127.0.0.1
	defer server.Close()
	private, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	require.NoError(t, os.WriteFile(secret, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	c := cluster.Start(t, 3, ttl, valkeytest.WithTLS(&tls.Config{ServerName: "127.0.0.1", RootCAs: trusted}),
		valkeytest.WithArgs("--tls-cert-file", cert, "--tls-key-file", secret, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"))

	var expired atomic.Bool
	now := func() time.Time {
		if expired.Load() {
			return server.Certificate().NotAfter.AddDate(0, 0, 1)
		}
		return time.Now()
	}
	q, err := redlock.Open(c.Fleet.URLs(), redlock.WithPrefix("e2e"), redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler)),
		redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
			o.TLSConfig = &tls.Config{ServerName: "127.0.0.1", RootCAs: trusted, Time: now}
		}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	lease, err := q.Acquire(t.Context(), "key")
	require.NoError(t, err)
	site := c.Serve(c.Admin(q))
	p := browser.New(t)
	p.Goto(site.URL)
	said(p, "#sentence", "3 of 3 nodes vote")

	expired.Store(true)
	said(p, "#wait", "warning.*certificate has expired")
	said(p, "#sentence", "3 of 3 nodes vote")
	require.NoError(t, lease.Err())
	p.Picture("expired-certificate", true)
	p.Usable("an expired certificate")
	require.NoError(t, lease.Release(t.Context()))
}
