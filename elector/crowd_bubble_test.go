package elector_test

import (
	"context"
	"flag"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// candidates is how many take part in TestCrowd: go test ./elector -run TestCrowd -v -timeout 30m
// -args -candidates 10000
var candidates = flag.Int("candidates", 100, "how many candidates TestCrowd has")

const (
	crowdTTL       = 10 * time.Second
	crowdProcesses = 20 // that the candidates are spread over
)

// crowd is many candidates of one election.
type crowd struct {
	fleet  *redlocktest.Fleet
	quorum []*redlock.Quorum
	led    chan *leadership // receives each that is elected
	sent   atomic.Int64     // operations on nodes
}

type leadership struct {
	process int
	term    *elector.Term
}

// during returns how many commands for leases were sent to all nodes together while f ran, how many
// there were with those that look after the servers, and how long that took.
func (c *crowd) during(f func()) (leases, all int, took time.Duration) {
	leases, all, began := -int(c.sent.Load()), -c.commands(), time.Now()
	f()
	synctest.Wait()
	return leases + int(c.sent.Load()), all + c.commands(), time.Since(began)
}

func (c *crowd) commands() (n int) {
	for _, node := range c.fleet.Nodes() {
		n += node.Commands()
	}
	return n
}

// The crowd is a tracer that counts operations on nodes.

func (c *crowd) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}

func (c *crowd) TraceAcquireEnd(context.Context, redlock.TraceAcquireEndData) {}

func (c *crowd) TraceNodeStart(ctx context.Context, _ redlock.TraceNodeStartData) context.Context {
	c.sent.Add(1)
	return ctx
}

func (c *crowd) TraceNodeEnd(context.Context, redlock.TraceNodeEndData) {}
