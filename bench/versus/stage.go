package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// nodes is how many servers there are.
const nodes = 5

// defaultTTL of locks: Tenure's default. redsync's is 8 s, and valkeylock's 5 s.
const defaultTTL = 10 * time.Second

// stage is where rows run. It is not safe for concurrent use.
type stage struct {
	servers *place.Servers
	size    size
	only    []*rival.Kind // that take part; all if it is empty
	log     io.Writer
}

// setUp starts the servers and waits until Tenure lets them vote.
func setUp(ctx context.Context, sz size, log io.Writer, opts ...valkeytest.Option) (*stage, error) {
	servers, err := place.Start(nodes, opts...)
	if err != nil {
		return nil, err
	}
	s := &stage{servers: servers, size: sz, log: log}
	fmt.Fprintf(log, "servers are up; Tenure's restart gate lets them vote when they are about 14 s old\n")
	if err := servers.AwaitVotes(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends all servers.
func (s *stage) Close() error { return s.servers.Close() }

// config is what rivals work with.
func (s *stage) config(ttl time.Duration) rival.Config {
	return rival.Config{URLs: s.servers.URLs(), TTL: ttl}
}
