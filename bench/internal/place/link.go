package place

import (
	"fmt"
	"strings"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Links are links of limited bandwidth to servers.
type Links struct {
	URLs    []string // of the servers, over the links
	proxies []*toxiproxy.Proxy
}

// Narrow makes a link to each server. A link lets that many thousand bytes a second through to its
// server; replies are not limited.
func (s *Servers) Narrow(kilobytes int64) (*Links, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy's toxics use the global logger
	toxic := fmt.Sprintf(`{"type": "bandwidth", "stream": "upstream", "toxicity": 1, "attributes": {"rate": %d}}`, kilobytes)
	l := &Links{}
	for i, n := range s.Nodes() {
		api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
		proxy := toxiproxy.NewProxy(api, fmt.Sprintf("server %d", i+1), "127.0.0.1:0", n.Addr())
		l.proxies = append(l.proxies, proxy)
		err := proxy.Start()
		if err == nil {
			_, err = proxy.Toxics.AddToxicJson(strings.NewReader(toxic))
		}
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("place: link to server %d: %w", i+1, err)
		}
		l.URLs = append(l.URLs, "valkey://"+proxy.Listen)
	}
	return l, nil
}

// Close ends the links. Connections through them must be closed already.
func (l *Links) Close() {
	for _, p := range l.proxies {
		p.Stop()
	}
}
