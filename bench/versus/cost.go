package main

import (
	"context"
	"runtime"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
)

// The columns of costs, in several rows.
const (
	clientCPU   = "client CPU us/pair"
	serverCPU   = "server CPU us/pair" // of one server
	allocations = "allocations/pair"
)

// cost is what some work has cost.
type cost struct {
	took        time.Duration
	client      time.Duration // CPU of this process, getrusage(2), the background included
	servers     time.Duration // CPU of all servers, INFO cpu
	allocations uint64
}

// costOf does some work, after a garbage collection.
func (s *stage) costOf(ctx context.Context, work func() error) (*cost, error) {
	runtime.GC()
	servers, err := s.servers.CPU(ctx)
	if err != nil {
		return nil, err
	}
	before, err := stat.Used()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := work(); err != nil {
		return nil, err
	}
	c := &cost{took: time.Since(began)}
	after, err := stat.Used()
	if err != nil {
		return nil, err
	}
	if c.servers, err = s.servers.CPU(ctx); err != nil {
		return nil, err
	}
	c.client, c.servers, c.allocations = after.CPU-before.CPU, c.servers-servers, after.Mallocs-before.Mallocs
	return c, nil
}

// add notes a cost as that of so many pairs. That of the servers is one server's: the mean of those
// that the rival locks on.
func (c *cost) add(b *board, k *rival.Kind, pairs int) {
	n := float64(pairs)
	b.add(k, clientCPU, micros(c.client)/n)
	if servers := serversOf(k); servers > 0 {
		b.add(k, serverCPU, micros(c.servers)/n/float64(servers))
	}
}

// serversOf is how many of the servers a rival locks on.
func serversOf(k *rival.Kind) int {
	switch k.Servers {
	case rival.AllServers:
		return nodes
	case rival.OneServer:
		return 1
	default:
		return 0
	}
}
