package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/demo"
	"github.com/tenure-dev/tenure/examples/internal/demo/page"
	"github.com/tenure-dev/tenure/examples/internal/demo/processes"
	"github.com/tenure-dev/tenure/examples/internal/demo/service"
	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/redlock"
)

// shutdownPatience is how long requests may take to end.
const shutdownPatience = 5 * time.Second

// demonstrate shows a page on which the reader breaks things, until ctx ends or the duration is
// over. It returns when every replica it started is gone.
func demonstrate(ctx context.Context, cfg *config) (err error) {
	if cfg.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.duration)
		defer cancel()
	}
	listener, err := net.Listen("tcp", webAddress(cfg.web))
	if err != nil {
		return fmt.Errorf("-web: %w", err)
	}
	defer listener.Close()
	nodes, err := replicas.OpenNodes(cfg.nodes)
	if err != nil {
		return err
	}
	defer nodes.Close()
	dial, err := dialer(nodes)
	if err != nil {
		return err
	}
	if nodes.Fleet == nil { // those inside this process are there
		if err := nodes.AwaitVotes(ctx, baseSettings(cfg, nodes).QuorumOptions()...); err != nil {
			return err
		}
	}
	links, err := processes.Listen()
	if err != nil {
		return err
	}
	d := newDemo(cfg, nodes, dial, links.Addr())
	links.Serve(d)
	defer links.Close()
	defer d.Close()

	cluster := &cluster{settings: d.Settings}
	defer func() { err = errors.Join(err, cluster.close()) }()
	mux := http.NewServeMux()
	mux.Handle("/", page.Handler(d))
	mux.Handle("/tenure/", http.StripPrefix("/tenure", cluster))
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return serving },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Printf("the page is at http://%s/\n", listener.Addr())

	err = d.Run(ctx)
	stop() // ends the streams of messages
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownPatience)
	defer cancel()
	err = errors.Join(err, server.Shutdown(patience))
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	c := d.State().Counters
	fmt.Printf("%d ticks ran; run twice: %d; leases that overlap: %d; late writes refused: %d, taken: %d\n",
		c.Ticks, c.Twice, c.Overlaps, c.Refused, c.Accepted)
	return errors.Join(err, d.Verdict())
}

// baseSettings are those of all replicas.
func baseSettings(cfg *config, nodes *replicas.Nodes) service.Settings {
	return service.Settings{
		Prefix: "quickstart", Nodes: nodes.URLs, TTL: cfg.ttl, Elect: cfg.mode == modeElector, Gate: true,
		Job: fmt.Sprintf("quickstart-%s-%d", time.Now().UTC().Format("20060102T150405"), os.Getpid()),
	}
}

func newDemo(cfg *config, nodes *replicas.Nodes, dial func(context.Context, int) (net.Conn, error), links string) *demo.Demo {
	c := demo.Config{
		Where: demo.Processes, Replicas: cfg.replicas, Fleet: nodes.Fleet,
		Service: baseSettings(cfg, nodes), Dial: dial, Launch: processes.Launch,
		Observe: func(s service.Settings) (*redlock.Quorum, error) { return observe(s, "the demonstration") },
	}
	c.Service.Links = links
	for i := range nodes.URLs {
		c.Hosts = append(c.Hosts, nodes.Host(i))
	}
	return demo.New(c)
}

// dialer returns a function that connects with a node, by its number from 1.
func dialer(nodes *replicas.Nodes) (func(ctx context.Context, node int) (net.Conn, error), error) {
	type address struct{ network, text string }
	var addresses []address
	for i, u := range nodes.URLs {
		network, text, err := serverAddress(u)
		if err != nil {
			return nil, fmt.Errorf("-web: node %d: %w", i+1, err)
		}
		addresses = append(addresses, address{network, text})
	}
	return func(ctx context.Context, node int) (net.Conn, error) {
		var d net.Dialer
		a := addresses[node-1]
		return d.DialContext(ctx, a.network, a.text)
	}, nil
}

// serverAddress is where a node's server listens. Links lead there.
func serverAddress(text string) (network, address string, err error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", "", errors.New("the URL cannot be read") // whose text may have a password
	case u.Scheme == "unix":
		return "unix", u.Path, nil
	}
	return "tcp", net.JoinHostPort(cmp.Or(u.Hostname(), "127.0.0.1"), cmp.Or(u.Port(), "6379")), nil
}

// webAddress is where to listen: on loopback unless an address says otherwise.
func webAddress(text string) string {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return text // which the listener complains about
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)
}
