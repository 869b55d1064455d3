// Versus runs Tenure, the floor beneath it and its peers on the same work, side by side:
//
//	go run ./versus
//	go run ./versus -row pair,contended
//
// It starts five valkey-server processes of its own, without persistence and on free ports. Rounds
// are interleaved. It prints the medians, their spread and the ratios to the floor of the same
// round. Where /proc tells, it also prints which part of the machine other processes took
// meanwhile. A full run takes about 15 minutes on two cores. Nothing else should run on the machine
// meanwhile.
//
// It exits with 1 if it could not run, or if an operation failed that must not fail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

func main() {
	if child.IsReplica() {
		exit(playTask())
	}
	names := flag.String("row", "", "the rows to run, with commas; all if empty")
	flag.Parse()
	some, err := chosen(*names, fullSize)
	if err != nil || flag.NArg() > 0 {
		exit(errors.Join(err, fmt.Errorf("versus: everything is set by flags, see -help: %q", flag.Args())))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	exit(run(ctx, some, fullSize, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run runs the rows. A row that fails does not keep the others from running.
func run(ctx context.Context, rows []*row, sz size, out io.Writer, opts ...valkeytest.Option) error {
	s, err := setUp(ctx, sz, os.Stderr, opts...)
	if err != nil {
		return err
	}
	defer s.servers.Close()
	version, err := s.servers.Version(ctx)
	if err != nil {
		return err
	}
	r := &report{machine: machine(version, time.Now())}
	for _, row := range rows {
		began := time.Now()
		b := newBoard(row)
		if failed := b.watch(ctx, s); failed != nil {
			err = errors.Join(err, fmt.Errorf("versus: row %s failed, %s: %w", row.name, b.others(), failed))
			continue
		}
		b.finish()
		r.boards = append(r.boards, b)
		fmt.Fprintf(os.Stderr, "%s: %s, %s\n", row.name, time.Since(began).Round(time.Second/10), b.others())
	}
	fmt.Fprint(out, strings.TrimSpace(r.markdown()), "\n")
	return err
}
