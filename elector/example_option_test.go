package elector_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/elector"
)

func ExampleWithTTL() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	_, err := elector.New(q, "compactor", elector.WithTTL(100*time.Millisecond))
	fmt.Println(err)
	// Output: elector: lease: WithTTL: 100ms is below the minimum of 1s
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

func ExampleElector_Identity() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor")
	other, _ := elector.New(q, "compactor")
	fmt.Println(e.Identity() == other.Identity())
	// Output: false
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
