package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/tenure-dev/tenure/tools/torture/plan"
)

const (
	// stuckAfter is when a change of a link is given up. toxiproxy itself takes up to 5 s if a
	// connection's last bytes cannot be delivered. It may also never return: it waits for a
	// connection whose writer has failed, and this connection waits for the lock that the change
	// holds (ToxicLink.write, RemoveLink).
	stuckAfter = 8 * time.Second
	// listenWithin bounds how long a link tries to get its port back.
	listenWithin = 5 * time.Second
	retryEvery   = 20 * time.Millisecond
)

// link is the network between the clients of one side, or one client, and one server. It is safe
// for concurrent use.
type link struct {
	side     plan.Side
	server   int
	upstream string

	mu     sync.Mutex
	proxy  *toxiproxy.Proxy // guarded by mu
	listen string           // guarded by mu; keeps its port
}

// silent returns the server that toxiproxy needs to make a proxy. It serves nothing.
func silent() *toxiproxy.ApiServer {
	return toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
}

// open starts a proxy. Called with mu held, or before the link is shared.
func (l *link) open() error {
	proxy := toxiproxy.NewProxy(silent(), l.upstream, l.listen, l.upstream)
	if err := start(proxy); err != nil {
		return fmt.Errorf("cluster: link to server %d: %w", l.server+1, err)
	}
	l.proxy, l.listen = proxy, proxy.Listen
	return nil
}

// start makes the proxy listen, unless it does already. It retries, because an outgoing connection
// may have been given the port while the link was cut.
func start(proxy *toxiproxy.Proxy) error {
	deadline := time.Now().Add(listenWithin)
	for {
		err := proxy.Start()
		switch {
		case err == nil, errors.Is(err, toxiproxy.ErrProxyAlreadyStarted):
			return nil
		case time.Now().After(deadline):
			return err
		}
		time.Sleep(retryEvery)
	}
}

// addr returns the address to which clients connect. It never changes.
func (l *link) addr() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listen
}

// narrow is the rate of a narrow link, in KB a second.
const narrow = 3

// strike makes a fault happen. The link must be well.
func (l *link) strike(f plan.Fault) error {
	ms := f.Amount.Milliseconds()
	switch f.Kind {
	case plan.Cut:
		return l.change(func(p *toxiproxy.Proxy) error { p.Stop(); return nil })
	case plan.BlackHole:
		return l.add(toxic("timeout", "upstream", "timeout", 0), toxic("timeout", "downstream", "timeout", 0))
	case plan.DropRequests:
		return l.add(toxic("timeout", "upstream", "timeout", 0))
	case plan.DropReplies:
		return l.add(toxic("timeout", "downstream", "timeout", 0))
	case plan.Latency:
		return l.add(toxic("latency", "upstream", "latency", ms/2), toxic("latency", "downstream", "latency", ms-ms/2))
	case plan.Bandwidth:
		return l.add(toxic("bandwidth", "upstream", "rate", narrow), toxic("bandwidth", "downstream", "rate", narrow))
	case plan.SlowClose:
		return l.add(toxic("slow_close", "upstream", "delay", ms), toxic("slow_close", "downstream", "delay", ms))
	default:
		return fmt.Errorf("cluster: %s is no fault of a server or a link", f.Kind)
	}
}

// toxic returns the JSON by which toxiproxy describes a toxic.
func toxic(kind, stream, attribute string, value int64) string {
	return fmt.Sprintf(`{"type": %q, "stream": %q, "toxicity": 1, "attributes": {%q: %d}}`, kind, stream, attribute, value)
}

func (l *link) add(toxics ...string) error {
	return l.change(func(p *toxiproxy.Proxy) error {
		for _, t := range toxics {
			if _, err := p.Toxics.AddToxicJson(strings.NewReader(t)); err != nil {
				return err
			}
		}
		return nil
	})
}

// heal puts the link right. Connections that lost bytes are closed.
func (l *link) heal() error {
	return l.change(func(p *toxiproxy.Proxy) error {
		p.Toxics.ResetToxics(context.Background())
		return start(p)
	})
}

// change calls do with the proxy. If the proxy is stuck, change replaces it by a new one.
func (l *link) change(do func(*toxiproxy.Proxy) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	proxy, done := l.proxy, make(chan error, 1)
	go func() { done <- do(proxy) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("cluster: link to server %d: %w", l.server+1, err)
		}
		return nil
	case <-time.After(stuckAfter):
		go proxy.Stop() // closes the listener at least
		return l.open()
	}
}

func (l *link) close() {
	_ = l.change(func(p *toxiproxy.Proxy) error { p.Stop(); return nil })
}
