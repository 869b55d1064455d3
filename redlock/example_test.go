package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// exampleQuorum stands for redlock.Open with the URLs of real nodes.
func exampleQuorum(opts ...redlock.Option) (q *redlock.Quorum, closeAll func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	q, err = redlock.Open(fleet.URLs(), append(opts, redlock.WithClientOption(fleet.ClientOption))...)
	if err != nil {
		log.Fatal(err)
	}
	q.Nodes(context.Background()) // waits for the connections
	return q, func() {
		q.Close()
		fleet.Close()
	}
}

func Example() {
	q, closeAll := exampleQuorum() // redlock.Open([]string{"valkey://a", "valkey://b", "valkey://c"})
	defer closeAll()
	ctx := context.Background()

	lease, err := q.Acquire(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Release(ctx)

	// Work with lease.Context(): it ends when the lease does.
	fmt.Println("holding", lease.Key(), lease.Context().Err() == nil)
	// Output: holding reports/nightly true
}

func ExampleQuorum_Do() {
	q, closeAll := exampleQuorum() // redlock.Open([]string{"valkey://a", "valkey://b", "valkey://c"})
	defer closeAll()

	err := q.Do(context.Background(), "reports/nightly", func(ctx context.Context, l *redlock.Lease) error {
		// Work with ctx: it ends with the caller's context, and when the lease is lost.
		fmt.Println("holding", l.Key(), ctx.Err() == nil)
		return nil
	})
	fmt.Println(err)
	// Output:
	// holding reports/nightly true
	// <nil>
}

func ExampleOpen() {
	q, err := redlock.Open(
		[]string{"valkey://10.0.0.1", "valkey://10.0.0.2", "valkey://10.0.0.3"},
		redlock.WithTTL(15*time.Second),
		redlock.WithPrefix("billing"),
		redlock.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
}

func ExampleOpen_badOption() {
	_, err := redlock.Open([]string{"valkey://a"}, redlock.WithTTL(100*time.Millisecond))
	fmt.Println(err)
	// Output: redlock: WithTTL: 100ms is below the minimum of 1s
}

func ExampleQuorum_TryAcquire() {
	q, closeAll := exampleQuorum(redlock.WithIdentity("worker-1"))
	defer closeAll()
	ctx := context.Background()

	lease, err := q.TryAcquire(ctx, "invoice/42")
	if err != nil {
		log.Fatal(err)
	}
	_, err = q.TryAcquire(ctx, "invoice/42")
	var held *redlock.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by", held.Holder.Identity)
	}
	fmt.Println(lease.Release(ctx))
	// Output:
	// held by worker-1
	// <nil>
}

func ExampleQuorum_Acquire() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.Acquire(context.Background(), "key")

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := q.Acquire(ctx, "key")
	fmt.Println(errors.Is(err, context.DeadlineExceeded), errors.Is(err, redlock.ErrHeld))

	time.AfterFunc(10*time.Millisecond, func() { lease.Release(context.Background()) })
	next, err := q.Acquire(context.Background(), "key")
	fmt.Println(err, next.FencingToken() > lease.FencingToken())
	// Output:
	// true true
	// <nil> true
}

func ExampleQuorum_Holder() {
	q, closeAll := exampleQuorum(redlock.WithIdentity("worker-1"))
	defer closeAll()
	ctx := context.Background()

	_, err := q.Holder(ctx, "key")
	fmt.Println(err)
	lease, _ := q.TryAcquire(ctx, "key")
	holder, err := q.Holder(ctx, "key")
	fmt.Println(holder.Identity, holder.FencingToken == lease.FencingToken(), err)
	// Output:
	// redlock: not held by anyone
	// worker-1 true <nil>
}

func ExampleQuorum_Nodes() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	for _, node := range q.Nodes(context.Background()) {
		if !node.Reachable {
			fmt.Println(node.Node, "is down:", node.Err)
		}
	}
	// Output:
}

func ExampleQuorum_Close() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key")
	q.Close()
	fmt.Println(lease.Err())
	// Output: redlock: lease on "key" lost: the quorum was closed
}

func ExampleLease_Context() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key")
	go lease.Release(context.Background())

	<-lease.Context().Done()
	fmt.Println(context.Cause(lease.Context()))
	// Output: redlock: lease released
}

func ExampleLease_Err() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, err := q.Acquire(context.Background(), "key", redlock.WithTTL(time.Second), redlock.WithoutAutoExtend())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Err())
	<-lease.Context().Done() // nobody extends it
	fmt.Println(lease.Err())
	// Output:
	// <nil>
	// redlock: lease on "key" lost: its validity ran out
}

func ExampleLease_FencingToken() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	ctx := context.Background()

	// A resource that remembers the largest token refuses everything older.
	var largest uint64
	write := func(token uint64) bool {
		if token < largest {
			return false
		}
		largest = token
		return true
	}
	first, _ := q.TryAcquire(ctx, "key")
	first.Release(ctx)
	second, _ := q.TryAcquire(ctx, "key")
	fmt.Println(write(second.FencingToken()), write(first.FencingToken()))
	// Output: true false
}

func ExampleLease_Extend() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	ctx := context.Background()
	lease, _ := q.TryAcquire(ctx, "key", redlock.WithoutAutoExtend())
	before := lease.Deadline()
	fmt.Println(lease.Extend(ctx), lease.Deadline().After(before))
	// Output: <nil> true
}

func ExampleLease_Release() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key")

	ctx, cancel := context.WithCancel(context.Background())
	cancel() // Release works nevertheless, and more than once
	fmt.Println(lease.Release(ctx), lease.Release(ctx))
	// Output: <nil> <nil>
}

func ExampleLease_StopExtending() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.Acquire(context.Background(), "key", redlock.WithTTL(time.Second))
	lease.StopExtending()
	<-lease.Context().Done() // at the deadline, with the key still in place for a moment
	fmt.Println(errors.Is(lease.Err(), redlock.ErrLost))
	// Output: true
}

func ExampleWithMinHold() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	ctx := context.Background()
	lease, _ := q.TryAcquire(ctx, "tick/12:00:00", redlock.WithMinHold(2*time.Second))
	lease.Release(ctx) // ends the lease; the key stays until two seconds after it was acquired

	_, err := q.TryAcquire(ctx, "tick/12:00:00")
	fmt.Println(errors.Is(err, redlock.ErrHeld))
	// Output: true
}

func ExampleErrorType() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	ctx := context.Background()
	q.TryAcquire(ctx, "key")
	_, err := q.TryAcquire(ctx, "key")
	fmt.Println(redlock.ErrorType(err))
	// Output: held
}
