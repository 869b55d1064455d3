// Package floor is the least that valkey-go and a number of servers can do when all of them are
// asked and a quorum of answers is enough. Benchmarks show it beside what a lock does, so that what
// a machine or a client library costs is not taken for the cost of the lock.
//
// It is no lock, and nothing to build one of: it has no owner, no validity, no token, no gate, no
// timeout, and no order. A command overtakes the one before it now and then, because a round goes
// on without the slowest nodes, and a node that never answers gathers goroutines.
package floor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/valkey-io/valkey-go"
)

// Floor is a client of each node with its own connection: one, which takes less than the four that
// valkey-go makes of it by default. It is safe for concurrent use.
type Floor struct {
	clients []valkey.Client
	asked   sync.WaitGroup
}

// Open connects to the nodes at urls, such as valkey://host:6379. The caller closes the Floor. It
// fails if any node cannot be reached.
func Open(urls []string) (*Floor, error) {
	if len(urls) == 0 {
		return nil, errors.New("floor: no URLs: give that of each node")
	}
	f := &Floor{}
	for i, url := range urls {
		option, err := valkey.ParseURL(url)
		if err == nil {
			var client valkey.Client
			option.ForceSingleClient, option.DisableCache = true, true
			option.PipelineMultiplex = -1 // one connection
			if client, err = valkey.NewClient(option); err == nil {
				f.clients = append(f.clients, client)
				continue
			}
		}
		f.Close()
		return nil, fmt.Errorf("floor: cannot connect to node %d of %d: start it, or correct its URL: %w", i+1, len(urls), err)
	}
	return f, nil
}

// Close disconnects, and waits for the goroutines of nodes that were not waited for before.
func (f *Floor) Close() {
	for _, c := range f.clients {
		c.Close()
	}
	f.asked.Wait()
}

// Majority sends a command to all nodes, with a goroutine each, and returns with the quorum-th
// answer. What a node answers is not looked at: a refusal, such as the nil of a SET NX, is an
// answer as well. It fails when so many nodes failed that there will be no quorum, with the error
// of the last one.
//
// build is called once for each client, concurrently: a command is used up by sending it.
func (f *Floor) Majority(build func(valkey.Client) valkey.Completed) error {
	return f.ask(len(f.clients)/2+1, func(c valkey.Client) error { return failure(c.Do(context.Background(), build(c))) })
}

// MajorityPipeline is Majority with several commands, which reach a node in one pipeline. A node
// has answered when it has answered all of them.
func (f *Floor) MajorityPipeline(build func(valkey.Client) valkey.Commands) error {
	return f.ask(len(f.clients)/2+1, pipeline(build))
}

// AllPipeline is MajorityPipeline that waits for every node, and fails if one does: what a
// benchmark prepares is there on all of them.
func (f *Floor) AllPipeline(build func(valkey.Client) valkey.Commands) error {
	return f.ask(len(f.clients), pipeline(build))
}

func pipeline(build func(valkey.Client) valkey.Commands) func(valkey.Client) error {
	return func(c valkey.Client) error {
		for _, result := range c.DoMulti(context.Background(), build(c)...) {
			if err := failure(result); err != nil {
				return err
			}
		}
		return nil
	}
}

// failure is the error of a node that did not answer, or could not do what it was told.
func failure(result valkey.ValkeyResult) error {
	if err := result.Error(); err != nil && !valkey.IsValkeyNil(err) {
		return err
	}
	return nil
}

// ask has each node asked and waits for as many answers as are needed.
func (f *Floor) ask(need int, do func(valkey.Client) error) error {
	answers := make(chan error, len(f.clients))
	for _, c := range f.clients {
		f.asked.Go(func() { answers <- do(c) })
	}
	spare := len(f.clients) - need
	for need > 0 {
		switch err := <-answers; {
		case err == nil:
			need--
		case spare == 0:
			return fmt.Errorf("floor: too few of %d nodes answer: %w", len(f.clients), err)
		default:
			spare--
		}
	}
	return nil
}
