package redlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// exampleQuorum stands for redlock.Open with the URLs of real nodes. These have the time that they
// need on a busy machine.
func exampleQuorum(opts ...redlock.Option) (q *redlock.Quorum, closeAll func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	q, err = redlock.Open(fleet.URLs(), append([]redlock.Option{
		redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(15 * time.Second),
	}, opts...)...)
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
	fmt.Println(errors.Is(err, context.DeadlineExceeded))

	time.AfterFunc(10*time.Millisecond, func() { lease.Release(context.Background()) })
	next, err := q.Acquire(context.Background(), "key")
	fmt.Println(err, next.FencingToken() > lease.FencingToken())
	// Output:
	// true
	// <nil> true
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

func ExampleLease_Release() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key")

	ctx, cancel := context.WithCancel(context.Background())
	cancel() // Release works nevertheless, and more than once
	fmt.Println(lease.Release(ctx), lease.Release(ctx))
	// Output: <nil> <nil>
}

func ExampleWithMinHold() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	ctx := context.Background()
	lease, _ := q.TryAcquire(ctx, "tick/12:00:00", redlock.WithMinHold(30*time.Second))
	lease.Release(ctx) // ends the lease; the key stays until half a minute after it was acquired

	_, err := q.TryAcquire(ctx, "tick/12:00:00")
	fmt.Println(errors.Is(err, redlock.ErrHeld))
	// Output: true
}

func ExampleWithPayload() {
	q, closeAll := exampleQuorum(redlock.WithIdentity("worker-1"))
	defer closeAll()
	ctx := context.Background()
	lease, _ := q.TryAcquire(ctx, "cache/owner", redlock.WithPayload("10.0.0.1:8080"))
	holder, _ := q.Holder(ctx, "cache/owner") // in another process
	fmt.Println(holder.Identity, "is at", holder.Payload)
	lease.Release(ctx)
	// Output: worker-1 is at 10.0.0.1:8080
}

// printer is a tracer that prints how acquisitions end.
type printer struct{}

func (printer) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}

func (printer) TraceAcquireEnd(_ context.Context, data redlock.TraceAcquireEndData) {
	fmt.Printf("%s in %d round(s): %q\n", data.Key, data.Attempts, redlock.ErrorType(data.Err))
}

func ExampleWithTracer() {
	q, closeAll := exampleQuorum(redlock.WithTracer(printer{}))
	defer closeAll()
	q.TryAcquire(context.Background(), "key")
	q.TryAcquire(context.Background(), "key")
	// Output:
	// key in 1 round(s): ""
	// key in 1 round(s): "held"
}

func ExampleWithClientOption() {
	q, err := redlock.Open([]string{"valkeys://10.0.0.1", "valkeys://10.0.0.2", "valkeys://10.0.0.3"},
		redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
			o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13}
			o.Username, o.Password = "tenure", os.Getenv("VALKEY_PASSWORD")
		}))
	if err != nil {
		return
	}
	defer q.Close()
}

func ExampleQuorumError() {
	q, err := redlock.Open([]string{"valkey://127.0.0.1:1", "valkey://127.0.0.1:2", "valkey://127.0.0.1:3"},
		redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return
	}
	defer q.Close()
	_, err = q.TryAcquire(context.Background(), "key")
	var noQuorum *redlock.QuorumError
	if errors.As(err, &noQuorum) {
		fmt.Println(noQuorum.Succeeded, "of", noQuorum.Nodes, "nodes,", noQuorum.Need, "needed")
	}
	var node *redlock.NodeError
	fmt.Println(errors.As(err, &node), node.ErrorType())
	// Output:
	// 0 of 3 nodes, 2 needed
	// true connection
}
