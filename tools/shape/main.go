// Command shape measures the structure of a Go package, together with all packages below its
// internal directory: how its files hang together, where its methods are, how much there is to
// read. Tests are left out, and so are files for other platforms.
//
//	go run ./tools/shape                # measure package redlock
//	go run ./tools/shape ./scheduler    # measure another one
//	go run ./tools/shape -acquire       # run TryAcquire too, and count the functions that it meets
//
// It prints two Markdown tables: a row for each measure of the whole, and a row for each package.
// The code of each measure says how it counts. References between files are those inside one
// package. Between packages the compiler allows no cycle.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	acquire := flag.Bool("acquire", false, "run an uncontended TryAcquire too, and count the functions that it meets")
	flag.Parse()
	pattern := "./redlock"
	if flag.NArg() > 0 {
		pattern = flag.Arg(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, pattern, *acquire); err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

// run prints the tables of the package that matches pattern.
func run(ctx context.Context, out io.Writer, pattern string, acquire bool) error {
	pkgs, err := load(ctx, pattern)
	if err != nil {
		return err
	}
	root := pkgs[0].ImportPath
	var met []string
	if acquire {
		if met, err = runAcquire(ctx, root); err != nil {
			return err
		}
	}
	shapes := make([]*shape, len(pkgs))
	for i, pkg := range pkgs {
		if shapes[i], err = measure(pkg, root, met); err != nil {
			return err
		}
	}
	return write(out, sum(shapes), shapes)
}
