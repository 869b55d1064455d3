// Dashtest asks a real Prometheus everything that the example's dashboard and rules ask:
//
//	go run ./tools/dashtest
//
// It runs examples/observability, whose leader is killed and whose nodes are restarted meanwhile,
// and a Prometheus with the repository's configuration that scrapes it, both on the loopback
// interface, for about two minutes. Then it evaluates every expression of the dashboard, with
// Grafana's variables replaced, and of every rule. It prints them with their answers and exits with
// 1 if Prometheus refuses one, if an answer is empty that must not be, or if a metric or a label is
// asked for that there is none of. An alert may be quiet; what it compares must be there.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// limit is how long a run may take, from the start of the example.
const limit = 150 * time.Second

func main() {
	root := flag.String("root", ".", "`directory` of the repository")
	observe := flag.Duration("observe", 95*time.Second, "how long Prometheus scrapes before it is asked; 40s to 110s")
	flag.Parse()
	if flag.NArg() > 0 || *observe < 40*time.Second || *observe > 110*time.Second {
		fmt.Fprintln(os.Stderr, "dashtest: -observe is between 40s and 110s, and there are no arguments beside flags; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	problems, err := run(ctx, os.Stdout, options{root: *root, observe: *observe})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if problems > 0 {
		fmt.Printf("\n%d problems\n", problems)
		os.Exit(1)
	}
	fmt.Println("\nno problems")
}
