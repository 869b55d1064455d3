package elector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

func ExampleWithTTL() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	_, err := elector.New(q, "compactor", elector.WithTTL(100*time.Millisecond))
	fmt.Println(err)
	// Output: elector: lease: WithTTL: 100ms is below the minimum of 1s
}

func ExampleWithIdentity() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor", elector.WithIdentity("replica-1"))
	fmt.Println(e.Identity())
	// Output: replica-1
}

func ExampleWithPayload() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor", elector.WithIdentity("replica-1"), elector.WithPayload("10.0.0.1:8080"))
	ctx, cancel := context.WithCancel(context.Background())
	e.Run(ctx, func(ctx context.Context, term *elector.Term) error {
		leader, _ := e.Leader(ctx) // in another process
		fmt.Println(leader.Identity, "is at", leader.Payload)
		cancel()
		return nil
	})
	// Output: replica-1 is at 10.0.0.1:8080
}

func ExampleWithLeaseOptions() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	_, err := elector.New(q, "compactor", elector.WithLeaseOptions(redlock.WithExtendInterval(2*time.Second)))
	fmt.Println(err)
	// Output: <nil>
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

func ExampleWithBackoff() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	_, err := elector.New(q, "compactor", elector.WithBackoff(5*time.Second, time.Minute))
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithoutHistory() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	// Leases and nothing else, as on servers on which the program may not publish.
	_, err := elector.New(q, "compactor", elector.WithoutHistory(), elector.WithoutCard(), elector.WithoutOrders())
	fmt.Println(err)
	// Output: <nil>
}

func ExampleWithLogger() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	_, err := elector.New(q, "compactor", elector.WithLogger(slog.New(slog.NewJSONHandler(os.Stderr, nil))))
	fmt.Println(err)
	// Output: <nil>
}

// printer is a tracer that prints campaigns.
type printer struct{}

func (printer) TraceCampaignStart(ctx context.Context, data elector.TraceCampaignStartData) context.Context {
	fmt.Println("campaign for", data.Election)
	return ctx
}

func (printer) TraceCampaignEnd(_ context.Context, data elector.TraceCampaignEndData) {
	fmt.Println("elected:", data.Term != nil)
}

func ExampleWithTracer() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor", elector.WithTracer(printer{}))
	ctx, cancel := context.WithCancel(context.Background())
	e.Run(ctx, func(context.Context, *elector.Term) error {
		cancel()
		return nil
	})
	// Output:
	// campaign for compactor
	// elected: true
}

func ExampleErrorType() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor")
	fmt.Println(elector.ErrorType(e.IsLeader(context.Background())))
	// Output: not_leader
}

func ExampleElector_Election() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	e, _ := elector.New(q, "compactor")
	fmt.Println(e.Election())
	// Output: compactor
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
