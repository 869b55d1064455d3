package elector_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// exampleQuorum stands for redlock.Open with the URLs of real nodes. These have the time that they
// need on a busy machine.
func exampleQuorum() (q *redlock.Quorum, closeAll func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	q, err = redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption),
		redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(15*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	return q, func() {
		q.Close()
		fleet.Close()
	}
}

func Example() {
	q, closeAll := exampleQuorum() // redlock.Open([]string{"valkey://a", "valkey://b", "valkey://c"})
	defer closeAll()
	e, err := elector.New(q, "webhook-sender")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // signal.NotifyContext in a service
	err = e.Run(ctx, func(ctx context.Context, term *elector.Term) error {
		fmt.Println("leading:", e.IsLeader(ctx) == nil)
		cancel()
		<-ctx.Done() // ends with the term
		return nil
	})
	fmt.Println(err)
	// Output:
	// leading: true
	// <nil>
}

func ExampleNew() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	_, err := elector.New(q, "")
	fmt.Println(err)
	// Output: elector: election: is empty: name what is led
}

func ExampleElector_Run() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	changes := e.Changes(context.Background())
	done := make(chan error)
	go func() { done <- e.Run(ctx, nil) }() // no work of its own: ask IsLeader instead
	for c := range changes {
		fmt.Println(c.Kind)
		if c.Kind != elector.Elected {
			break
		}
		cancel()
	}
	fmt.Println(<-done)
	// Output:
	// elected
	// resigned
	// <nil>
}

func ExampleElector_Leader() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor", elector.WithIdentity("replica-1"))
	ctx, cancel := context.WithCancel(context.Background())
	_, err := e.Leader(ctx)
	fmt.Println(err)
	e.Run(ctx, func(ctx context.Context, term *elector.Term) error {
		leader, err := e.Leader(ctx)
		fmt.Println(leader.Identity, leader.Term == term.Number(), err)
		cancel()
		return nil
	})
	// Output:
	// elector: nobody leads
	// replica-1 true <nil>
}

func ExampleTerm_Resign() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor")
	ctx, cancel := context.WithCancel(context.Background())
	e.Run(ctx, func(ctx context.Context, term *elector.Term) error {
		go term.Resign(context.Background())
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		cancel()
		return nil
	})
	// Output: elector: resigned
}

func ExampleObserve() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor", elector.WithIdentity("replica-1"), elector.WithPayload("10.0.0.1:8080"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- e.Run(ctx, nil) }()
	for leader, err := range elector.Observe(context.Background(), q, "compactor") { // in another process
		switch {
		case err != nil:
			fmt.Println("it is not known who leads:", err)
		case leader.Term == 0:
			continue // nobody leads
		default:
			fmt.Println(leader.Identity, "is at", leader.Payload)
		}
		break
	}
	cancel()
	fmt.Println(<-done)
	// Output:
	// replica-1 is at 10.0.0.1:8080
	// <nil>
}

func ExampleWithDrainTimeout() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor", elector.WithDrainTimeout(50*time.Millisecond))
	ctx, cancel := context.WithCancel(context.Background())
	never := make(chan struct{})
	err := e.Run(ctx, func(context.Context, *elector.Term) error {
		cancel()
		<-never // does not look at its context
		return nil
	})
	fmt.Println(errors.Is(err, elector.ErrDrainTimeout)) // its lease runs out by itself
	close(never)
	// Output: true
}

func ExampleTerm() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor")
	ctx, cancel := context.WithCancel(context.Background())
	e.Run(ctx, func(ctx context.Context, term *elector.Term) error {
		fmt.Println(term.Number() > 0)                           // to be sent with every write
		fmt.Println(time.Until(term.Deadline()) > 5*time.Second) // enough time for the next step?
		fmt.Println(term.Context() == ctx, term.Context().Err()) // the same context
		cancel()
		return nil
	})
	// Output:
	// true
	// true
	// true <nil>
}

func ExampleChange_String() {
	fmt.Println(elector.Change{Kind: elector.Resigned, Term: 7, Err: elector.ErrResigned})
	// Output: resigned, term 7: elector: resigned
}
