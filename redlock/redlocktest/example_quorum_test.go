package redlocktest_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// hold starts three nodes and acquires a lease on them.
func hold() (*redlocktest.Fleet, *redlock.Quorum, *redlock.Lease) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		panic(err)
	}
	q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption),
		redlock.WithLogger(slog.New(slog.DiscardHandler)), redlock.WithNodeTimeout(2*time.Second))
	if err != nil {
		panic(err)
	}
	q.Nodes(context.Background()) // until all have been looked at, so that all of them get the lease
	lease, err := q.Acquire(context.Background(), "key")
	if err != nil {
		panic(err)
	}
	return fleet, q, lease
}

// What a test of a user's own looks like: on fake time, with a fault.
func ExampleStartPipes() {
	_ = func(t *testing.T) { // func TestWorkStopsWithTheLease
		synctest.Test(t, func(t *testing.T) {
			fleet := redlocktest.StartPipes(t, 3)
			q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption))
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			lease, err := q.Acquire(t.Context(), "key")
			if err != nil {
				t.Fatal(err)
			}
			fleet.Node(0).Freeze()
			fleet.Node(1).Freeze()
			<-lease.Context().Done() // takes no real time
		})
	}
}

func ExampleStart() {
	_ = func(t *testing.T) { // func TestSomething
		fleet := redlocktest.Start(t, 3) // closed with the test
		q, err := redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
	}
}

func ExampleNode_Kill() {
	fleet, q, lease := hold()
	defer fleet.Close()
	defer q.Close()
	fleet.Node(0).Kill()
	fmt.Println(lease.Extend(context.Background())) // a minority does not matter
	fleet.Node(1).Kill()
	fmt.Println(redlock.ErrorType(lease.Extend(context.Background())))
	// Output:
	// <nil>
	// no_quorum
}

func ExampleNode_Thaw() {
	fleet, q, lease := hold()
	defer fleet.Close()
	defer q.Close()
	fleet.Node(0).Freeze()
	fleet.Node(1).Freeze()
	fmt.Println(redlock.ErrorType(lease.Extend(context.Background())))
	fleet.Node(0).Thaw()
	fmt.Println(lease.Extend(context.Background()))
	// Output:
	// timeout
	// <nil>
}

func ExampleNode_SetDelay() {
	fleet, q, lease := hold()
	defer fleet.Close()
	defer q.Close()
	for _, node := range fleet.Nodes() {
		node.SetDelay(20 * time.Millisecond)
	}
	start := time.Now()
	lease.Release(context.Background())
	fmt.Println(time.Since(start) >= 20*time.Millisecond)
	// Output: true
}

func ExampleNode_FlushAll() {
	fleet, q, lease := hold()
	defer fleet.Close()
	defer q.Close()
	for _, node := range fleet.Nodes() {
		node.FlushAll()
	}
	lease.Extend(context.Background()) // the next extension, which tells
	<-lease.Context().Done()
	fmt.Println(lease.Err())
	// Output: redlock: lease on "key" lost: a quorum of nodes no longer holds it for this owner
}
