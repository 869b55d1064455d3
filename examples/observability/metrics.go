package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// page serves the metrics of a replica.
type page struct {
	server *http.Server
	addr   string
	ended  chan error
}

func servePage(address string, scrape http.Handler) (*page, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics; choose another -metrics-port: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", scrape)
	p := &page{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second},
		addr:   listener.Addr().String(),
		ended:  make(chan error, 1),
	}
	go func() { p.ended <- p.server.Serve(listener) }()
	return p, nil
}

// close ends the service, when scrapes that go on are done.
func (p *page) close(ctx context.Context) error {
	err := p.server.Shutdown(ctx)
	if served := <-p.ended; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
