// Poller elects one of three replicas, which polls something, and hands over when it is stopped:
//
//	go run ./examples/poller
//
// It needs no server and no scheduler: five nodes run inside the process, and so do the replicas,
// each with a Quorum of its own as if it were a process of its own. What is polled refuses a poller
// with an older term than it has seen. The program exits with 1 if two replicas polled at a time,
// or nobody took over.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func main() {
	fleet, err := redlocktest.New(5)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	source := &source{}
	stops := make(map[string]func())
	for _, name := range []string{"a", "b", "c"} {
		if stops[name], err = replica(fleet.URLs(), name, source); err != nil {
			log.Fatal(err)
		}
	}
	for range 3 {
		time.Sleep(1500 * time.Millisecond)
		leader := source.last()
		if stops[leader] == nil {
			fmt.Println("nobody took over")
			os.Exit(1)
		}
		fmt.Println(leader, "stops")
		stops[leader]()
		delete(stops, leader)
	}
	fmt.Printf("%d polls by 3 leaders, one after the other\n", source.polls)
}

// replica is what each process of a service does.
func replica(nodes []string, name string, source *source) (stop func(), err error) {
	q, err := redlock.Open(nodes, redlock.WithPrefix("example-poller"), redlock.WithTTL(3*time.Second), redlock.WithIdentity(name))
	if err != nil {
		return nil, err
	}
	e, err := elector.New(q, "poller")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		err := e.Run(ctx, func(ctx context.Context, term *elector.Term) error { return poll(ctx, term, name, source) })
		if err != nil {
			log.Print(err)
		}
	}()
	return func() {
		cancel()
		<-left
		if err := q.Close(); err != nil {
			log.Print(err)
		}
	}, nil
}

// poll is the work of the leader. ctx ends with the term.
func poll(ctx context.Context, term *elector.Term, name string, source *source) error {
	fmt.Println(name, "leads, term", term.Number())
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := source.poll(name, term.Number()); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// source is what is polled.
type source struct {
	mu    sync.Mutex
	name  string // of who polled last
	term  uint64
	polls int
}

// poll refuses a poller whose term is over.
func (s *source) poll(name string, term uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if term < s.term {
		return fmt.Errorf("%s polls with term %d, after term %d", name, term, s.term)
	}
	s.name, s.term = name, term
	s.polls++
	return nil
}

func (s *source) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name
}
