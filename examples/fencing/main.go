// Fencing shows how a resource checks fencing tokens, and what happens without the check:
//
//	go run ./examples/fencing
//
// It needs no server: five nodes run inside the process. Holder A acquires a lease and checks that
// it is valid. Before A writes, it is delayed until its lease has expired and B has the next one.
// Then A writes, and a table in SQLite refuses the write because of its token. The program repeats
// this without the check, and B's deposit is lost. It exits with 1 if anything happens differently.
//
// account.go has a table that checks tokens, and handler.go an HTTP server that does: copy them
// from here. docs/leases.md explains them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run tells the story twice: with the check and without it.
func run(ctx context.Context, out io.Writer) error {
	fleet, err := redlocktest.New(5)
	if err != nil {
		return err
	}
	defer fleet.Close()
	dir, err := os.MkdirTemp("", "fencing-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(out, "With fencing tokens checked by the table:")
	refusal, balance, err := tell(ctx, out, fleet.URLs(), filepath.Join(dir, "checked.db"), true)
	if err != nil || !errors.Is(refusal, errStale) || balance != 125 {
		return errors.Join(err, fmt.Errorf("the late write should be refused: %v, balance %d", refusal, balance))
	}
	fmt.Fprintln(out, "\nThe same without the check:")
	refusal, balance, err = tell(ctx, out, fleet.URLs(), filepath.Join(dir, "unchecked.db"), false)
	if err != nil || refusal != nil || balance != 150 {
		return errors.Join(err, fmt.Errorf("the late write should be done: %v, balance %d", refusal, balance))
	}
	fmt.Fprintln(out, "  B's deposit is gone, and nobody was told")
	return nil
}

// tell makes A lose its lease between its last check and its write, and B write in between. It
// returns the error of A's late write, and the balance after it.
func tell(ctx context.Context, out io.Writer, nodes []string, file string, check bool) (refusal error, balance int64, err error) {
	table, err := openAccounts(ctx, file)
	if err != nil {
		return nil, 0, err
	}
	defer table.close()
	token := func(l *redlock.Lease) uint64 {
		if check {
			return l.FencingToken()
		}
		return 1 // the same from all, so nothing is compared
	}
	// deposit does a holder's work with the token of its lease: acquire, claim, compute, write.
	deposit := func(who string, amount int64) (*redlock.Lease, error) {
		q, err := redlock.Open(nodes, redlock.WithPrefix("fencing"), redlock.WithIdentity(who), redlock.WithTTL(3*time.Second))
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = q.Close() }) // a process has one Quorum, and closes it at its end
		lease, err := q.Acquire(ctx, "account/main")
		if err != nil {
			return nil, err
		}
		balance, err := table.claim(ctx, "main", token(lease))
		return lease, errors.Join(err, table.set(ctx, "main", balance+amount, token(lease)))
	}
	ctx, end := context.WithCancel(ctx)
	defer end()

	a, err := deposit("A", 100)
	if err != nil {
		return nil, 0, err
	}
	fmt.Fprintf(out, "  A acquires the lease, token %d, and deposits 100\n", a.FencingToken())
	read, err := table.claim(ctx, "main", token(a))
	if err = errors.Join(err, a.Err()); err != nil {
		return nil, 0, err
	}
	a.StopExtending() // like a process that is paused
	fmt.Fprintf(out, "  A reads %d to deposit 50 more, asks its lease, which is valid, and stands still\n", read)
	b, err := deposit("B", 25)
	if err != nil {
		return nil, 0, err
	}
	fmt.Fprintf(out, "  B acquires the lease when A's has run out, token %d, and deposits 25\n", b.FencingToken())
	refusal = table.set(ctx, "main", read+50, token(a))
	balance, err = table.claim(ctx, "main", token(b))
	fmt.Fprintf(out, "  A goes on, and writes %d: %v\n  balance: %d\n", read+50, refusal, balance)
	return refusal, balance, errors.Join(err, b.Release(ctx))
}
