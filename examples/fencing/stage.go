package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// namedStore is a store with a name for the reader of the story.
type namedStore struct {
	name string
	store
}

// stage is the two resources: an account in an SQLite database, and one in a server's database
// behind HTTP. They know nothing of each other.
type stage struct {
	stores  []namedStore
	closers []func() error // in the order in which they were opened
}

// openStage opens both in a directory that close removes. With guard false they are handed every
// token and compare none.
func openStage(ctx context.Context, guard bool, logger *slog.Logger) (_ *stage, err error) {
	s := &stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	dir, err := os.MkdirTemp("", "fencing-")
	if err != nil {
		return nil, fmt.Errorf("fencing: cannot make a directory for the databases: %w", err)
	}
	s.closers = append(s.closers, func() error { return os.RemoveAll(dir) })

	open := func(file string) (store, error) {
		a, err := openAccounts(ctx, filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, a.close)
		if guard {
			return a, nil
		}
		return unguarded{a}, nil
	}
	local, err := open("local.db")
	if err != nil {
		return nil, err
	}
	behind, err := open("server.db")
	if err != nil {
		return nil, err
	}
	client, err := s.serve(newHandler(behind, logger), logger)
	if err != nil {
		return nil, err
	}
	s.stores = []namedStore{{"SQLite", local}, {"HTTP", client}}
	return s, nil
}

// serve starts a server on a free loopback port and returns its client.
func (s *stage) serve(h http.Handler, logger *slog.Logger) (*remote, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fencing: cannot start the HTTP server: %w", err)
	}
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	transport := &http.Transport{}
	s.closers = append(s.closers, func() error {
		transport.CloseIdleConnections()
		err := server.Close()
		serving.Wait()
		return err
	})
	return &remote{base: "http://" + listener.Addr().String(), client: &http.Client{Transport: transport}}, nil
}

// close ends all, the last first.
func (s *stage) close() error {
	var errs []error
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		errs = append(errs, s.closers[last]())
		s.closers = s.closers[:last]
	}
	return errors.Join(errs...)
}
