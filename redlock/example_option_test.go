package redlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

func ExampleWithTTL() {
	q, closeAll := exampleQuorum(redlock.WithTTL(30 * time.Second)) // for every lease
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key", redlock.WithTTL(5*time.Second)) // for this one
	fmt.Println(lease.TTL())
	// Output: 5s
}

func ExampleWithExtendInterval() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	fmt.Println(q.Validate("key", redlock.WithExtendInterval(9*time.Second)))
	// Output: redlock: WithExtendInterval: 9s leaves no room for two attempts within a TTL of 10s: use at most 7.634s
}

func ExampleWithoutAutoExtend() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key", redlock.WithoutAutoExtend())
	fmt.Println(lease.Extend(context.Background())) // as often as is needed
	// Output: <nil>
}

func ExampleWithIdentity() {
	q, closeAll := exampleQuorum(redlock.WithIdentity("worker-1"))
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key", redlock.WithIdentity("worker-1/import"))
	fmt.Println(q.Identity(), lease.Identity())
	// Output: worker-1 worker-1/import
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

func ExampleWithPrefix() {
	q, closeAll := exampleQuorum(redlock.WithPrefix("billing"))
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "invoice/42")
	fmt.Println(lease.Key()) // on the servers: billing:{invoice/42}
	// Output: invoice/42
}

func ExampleWithNodeTimeout() {
	q, closeAll := exampleQuorum(redlock.WithNodeTimeout(time.Second)) // nodes in other regions
	defer closeAll()
	fmt.Println(q.Validate("key", redlock.WithTTL(2*time.Second)))
	// Output: redlock: WithNodeTimeout: 1s is more than a quarter of the TTL of 2s
}

func ExampleWithDrift() {
	q, closeAll := exampleQuorum(redlock.WithDrift(0.05)) // clocks that nobody disciplines
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key")
	fmt.Println(time.Until(lease.Deadline()) < 9500*time.Millisecond)
	// Output: true
}

func ExampleWithLogger() {
	q, closeAll := exampleQuorum(redlock.WithLogger(slog.New(slog.NewJSONHandler(os.Stderr, nil))))
	defer closeAll()
	_, err := q.TryAcquire(context.Background(), "key")
	fmt.Println(err, q.Healthy())
	// Output: <nil> <nil>
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

func ExampleQuorum_Healthy() {
	q, closeAll := exampleQuorum()
	closeAll()
	fmt.Println(q.Healthy())
	// Output: redlock: quorum closed
}

func ExampleQuorum_Validate() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	fmt.Println(q.Validate(""))
	// Output: redlock: key: is empty
}

func ExampleQuorum_Identity() {
	q, closeAll := exampleQuorum(redlock.WithIdentity("worker-1"))
	defer closeAll()
	fmt.Println(q.Identity())
	// Output: worker-1
}

func ExampleLease_Deadline() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key")
	// Do not begin what may take longer than this.
	fmt.Println(time.Until(lease.Deadline()) > 5*time.Second)
	// Output: true
}

func ExampleLease_Key() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key")
	fmt.Println(lease.Key())
	// Output: key
}

func ExampleLease_TTL() {
	q, closeAll := exampleQuorum()
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key")
	fmt.Println(lease.TTL())
	// Output: 10s
}

func ExampleLease_Identity() {
	q, closeAll := exampleQuorum(redlock.WithIdentity("worker-1"))
	defer closeAll()
	lease, _ := q.TryAcquire(context.Background(), "key")
	fmt.Println(lease.Identity())
	// Output: worker-1
}

func ExampleHeldError() {
	q, closeAll := exampleQuorum(redlock.WithIdentity("worker-1"))
	defer closeAll()
	q.TryAcquire(context.Background(), "key")
	_, err := q.TryAcquire(context.Background(), "key")
	var held *redlock.HeldError
	fmt.Println(errors.As(err, &held), held.Holder.Identity, held.Holder.TTL > 9*time.Second)
	// Output: true worker-1 true
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

func ExampleLostError() {
	q, closeAll := exampleQuorum()
	lease, _ := q.TryAcquire(context.Background(), "key")
	closeAll()
	var lost *redlock.LostError
	fmt.Println(errors.As(lease.Err(), &lost), lost.Reason)
	// Output: true closed
}

func ExampleOptionError() {
	_, err := redlock.Open(nil)
	var invalid *redlock.OptionError
	fmt.Println(errors.As(err, &invalid), invalid.Option)
	// Output: true urls
}
