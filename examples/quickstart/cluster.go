package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/examples/internal/demo/service"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/web"
)

// operator is who gives the orders of the cluster page. A program that others reach has to find out
// who they are: see web.WithActions.
const operator = "the reader of the page"

// cluster is the page of package web beside the demonstration. The service begins anew, under
// another prefix, when its restart gate is switched, and so does the page.
type cluster struct {
	settings func() service.Settings

	mu      sync.Mutex
	prefix  string          // guarded by mu; of what follows
	quorum  *redlock.Quorum // guarded by mu; nil until the first request
	handler *web.Handler    // guarded by mu; as quorum
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, err := c.current()
	if err != nil {
		http.Error(w, "the cluster page does not work: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h.ServeHTTP(w, r)
}

// current returns the page of the service as it is now.
func (c *cluster) current() (*web.Handler, error) {
	s := c.settings()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handler != nil && c.prefix == s.Prefix {
		return c.handler, nil
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	q, err := observe(s, operator)
	if err != nil {
		return nil, err
	}
	h, err := clusterPage(q)
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	c.prefix, c.quorum, c.handler = s.Prefix, q, h
	return h, nil
}

// clusterPage is all that a program has to do for the page.
func clusterPage(q *redlock.Quorum) (*web.Handler, error) {
	client, err := admin.New(q)
	if err != nil {
		return nil, err
	}
	authorize := func(*http.Request, admin.Order) (who string, err error) { return operator, nil }
	return web.New(client, web.WithActions(authorize), web.WithTitle("quickstart"), web.WithHosts("localhost", "127.0.0.1", "::1"))
}

// close ends the page.
func (c *cluster) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end()
}

// end is called with mu held.
func (c *cluster) end() error {
	if c.handler == nil {
		return nil
	}
	err := errors.Join(c.handler.Close(), c.quorum.Close())
	c.handler, c.quorum = nil, nil
	return err
}

// observe opens a Quorum that is no replica's.
func observe(s service.Settings, identity string) (*redlock.Quorum, error) {
	q, err := redlock.Open(s.Nodes, append(s.QuorumOptions(), redlock.WithIdentity(identity))...)
	if err != nil {
		return nil, fmt.Errorf("cannot observe the nodes: %w", err)
	}
	return q, nil
}
