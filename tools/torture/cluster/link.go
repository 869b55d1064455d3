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

// open starts a proxy. Called with mu held, or before the link is shared.
func (l *link) open() error {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()) // serves nothing
	proxy := toxiproxy.NewProxy(server, l.upstream, l.listen, l.upstream)
	if err := start(proxy); err != nil {
		return fmt.Errorf("cluster: link to server %d: %w", l.server+1, err)
	}
	l.proxy, l.listen = proxy, proxy.Listen
	return nil
}

// start makes the proxy listen, unless it does already. It retries, because an outgoing connection
// may have been given the port while the link was cut.
func start(proxy *toxiproxy.Proxy) error {
	for deadline := time.Now().Add(listenWithin); ; time.Sleep(retryEvery) {
		err := proxy.Start()
		if errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
			err = nil
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
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
	const requests, replies = "upstream", "downstream"
	switch f.Kind {
	case plan.Cut:
		return l.stop()
	case plan.BlackHole:
		return l.add("timeout", "timeout", 0, requests, replies)
	case plan.DropRequests:
		return l.add("timeout", "timeout", 0, requests)
	case plan.DropReplies:
		return l.add("timeout", "timeout", 0, replies)
	case plan.Latency:
		ms := f.Amount.Milliseconds()
		return errors.Join(l.add("latency", "latency", ms/2, requests), l.add("latency", "latency", ms-ms/2, replies))
	case plan.Bandwidth:
		return l.add("bandwidth", "rate", narrow, requests, replies)
	case plan.SlowClose:
		return l.add("slow_close", "delay", f.Amount.Milliseconds(), requests, replies)
	default:
		return fmt.Errorf("cluster: %s is no fault of a server or a link", f.Kind)
	}
}

// add adds a toxic of toxiproxy to each of the streams.
func (l *link) add(kind, attribute string, value int64, streams ...string) error {
	return l.change(func(p *toxiproxy.Proxy) (err error) {
		for _, stream := range streams {
			toxic := fmt.Sprintf(`{"type": %q, "stream": %q, "toxicity": 1, "attributes": {%q: %d}}`, kind, stream, attribute, value)
			_, added := p.Toxics.AddToxicJson(strings.NewReader(toxic))
			err = errors.Join(err, added)
		}
		return err
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

// stop closes all connections, and refuses new ones until heal.
func (l *link) stop() error {
	return l.change(func(p *toxiproxy.Proxy) error { p.Stop(); return nil })
}
