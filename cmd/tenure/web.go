package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/web"
)

// endWithin is how long requests that are under way may still take when the server shuts down.
const endWithin = 5 * time.Second

func newWeb(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Serve the page that shows the cluster",
		Long: `Serves the page of package web, and the same as JSON below /api/v1/, until it is interrupted. It
listens on loopback unless it is told, and answers requests for its own names only, so that no page
from elsewhere reads it by way of a name of its own (DNS rebinding).

Whoever reaches it may read it. Without --actions nothing can be changed. With --actions whoever
reaches it may give orders, in the name of the user who started it, so it is for loopback only: for
more, serve web.Handler behind what authorizes requests in a program of yours.`,
		Example: `  tenure web
  tenure web --listen 127.0.0.1:9090 --actions
  tenure web --listen 0.0.0.0:8080 --host tenure.example.net`,
	}
	listen := cmd.Flags().String("listen", "127.0.0.1:8080", "address and port; port 0 for a free one")
	hosts := cmd.Flags().StringSlice("host", nil, "further names by which browsers may ask for it")
	actions := cmd.Flags().Bool("actions", false, "let whoever reaches it give orders; on loopback only")
	trace := cmd.Flags().String("trace-url", "", "where traces of runs are, such as https://tempo.example.net/trace/{trace_id}")
	cmd.Flags().StringVar(&p.as, "as", "", "who gives the orders (default user@host)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		names, err := namesOf(*listen, *hosts, *actions)
		if err != nil {
			return usage(err)
		}
		ctx, relay := newRelay(cmd.Context())
		defer relay.stop()
		c, err := p.reach(slog.LevelInfo)
		if err != nil {
			return err
		}
		defer c.q.Close()
		options := []web.Option{web.WithLogger(p.logger(slog.LevelInfo)), web.WithHosts(names...), web.WithTitle(line(p.connection.prefix))}
		if *actions {
			options = append(options, web.WithActions(func(*http.Request, admin.Order) (string, error) { return p.actor(), nil }))
		}
		if *trace != "" {
			options = append(options, web.WithTraceURL(*trace))
		}
		h, err := web.New(c.Client, options...)
		if err != nil {
			return err
		}
		defer h.Close()
		return serve(ctx, p, *listen, names[len(names)-1], h)
	}
	return cmd
}

// namesOf returns the names, without ports, by which browsers may ask for the page: the names of
// more and those of the address; the last one leads to it. It returns an error for an address on
// which the page must not be served.
func namesOf(listen string, more []string, actions bool) ([]string, error) {
	host, _, err := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	everywhere := host == "" || ip.IsUnspecified()
	if ip != nil {
		host = ip.String()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("--listen %s is no address and port, such as 127.0.0.1:8080", quoted(listen))
	case host == "localhost" || ip.IsLoopback():
		more = append(more, "localhost", "127.0.0.1", "::1")
	case actions:
		return nil, fmt.Errorf("--actions and --listen %s: whoever reaches that address could give orders: listen on loopback, "+
			"or serve web.Handler in a program that authorizes requests", quoted(listen))
	case everywhere && len(more) == 0:
		return nil, fmt.Errorf("--listen %s is every address of this host: name with --host by which names browsers ask for the page", quoted(listen))
	}
	if !everywhere {
		more = append(more, host)
	}
	return more, nil
}

// serve serves the page until ctx ends, which is no error. It prints its address with the name, for
// which h answers.
func serve(ctx context.Context, p *program, listen, name string, h *web.Handler) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	server.RegisterOnShutdown(func() { _ = h.Close() }) // closing the handler ends its streams
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	fmt.Fprintf(p.out, "http://%s/\n", net.JoinHostPort(strings.Trim(name, "[]"), port))
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	err = errors.Join(server.Shutdown(end), server.Close())
	<-failed
	return err
}
