package place

import (
	"errors"
	"fmt"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Links are ways to servers that take longer.
type Links struct {
	proxies []*toxiproxy.Proxy
	urls    []string
}

// Slow makes a link to each server that keeps every answer back for that long, in whole
// milliseconds.
func (s *Servers) Slow(delay time.Duration) (*Links, error) {
	return s.links("downstream", "latency", "latency", delay.Milliseconds())
}

// Narrow makes a link to each server that lets so many thousand bytes a second through to it.
func (s *Servers) Narrow(kilobytes int64) (*Links, error) {
	return s.links("upstream", "bandwidth", "rate", kilobytes)
}

func (s *Servers) links(stream, toxic, attribute string, value int64) (*Links, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy's toxics use the global logger
	l := &Links{}
	for i, n := range s.Nodes() {
		api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
		proxy := toxiproxy.NewProxy(api, fmt.Sprintf("server %d", i+1), "127.0.0.1:0", n.Addr())
		if err := proxy.Start(); err != nil {
			return nil, errors.Join(fmt.Errorf("place: link to server %d: %w", i+1, err), l.Close())
		}
		l.proxies = append(l.proxies, proxy)
		text := fmt.Sprintf(`{"type": %q, "stream": %q, "toxicity": 1, "attributes": {%q: %d}}`, toxic, stream, attribute, value)
		if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
			return nil, errors.Join(fmt.Errorf("place: link to server %d: %w", i+1, err), l.Close())
		}
		l.urls = append(l.urls, "valkey://"+proxy.Listen)
	}
	return l, nil
}

// URLs are the servers at the end of the links.
func (l *Links) URLs() []string { return l.urls }

// Close ends the links. Connections through them must be closed already.
func (l *Links) Close() error {
	for _, p := range l.proxies {
		p.Stop()
	}
	return nil
}
