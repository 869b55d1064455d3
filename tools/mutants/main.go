// Mutants shows that the tests bite: it breaks one rule of the protocol at a time and wants a test
// to fail.
//
//	go run ./tools/mutants
//
// First it runs every test that it counts on with nothing broken. It exits with 1 if a broken rule
// went unnoticed, and with 2 if a mutant shows nothing: because its anchor or its text is gone,
// because it does not compile, or because a test fails by itself. docs/mutants.md has the list.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// The exit codes.
const (
	exitCaught   = 0
	exitSurvived = 1
	exitTrouble  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	list, err := mutants()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitTrouble)
	}
	os.Exit(mutantsMain(ctx, os.Args[1:], list, os.Stdout, os.Stderr))
}

// options are what the user asked for.
type options struct {
	runner
	pattern  *regexp.Regexp
	list     bool
	markdown string
}

func parseFlags(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	pattern := flags.String("run", "", "only the mutants whose name matches this `regexp`")
	flags.BoolVar(&o.list, "list", false, "print the mutants and exit")
	flags.StringVar(&o.markdown, "markdown", "", "write the table into this `file`, between its marks; mutants that are not run keep their rows")
	flags.IntVar(&o.parallel, "parallel", 2, "how many mutants are tested at a time")
	flags.DurationVar(&o.tool.timeout, "timeout", 2*time.Minute, "for each run of go test, without what it takes to compile")
	flags.BoolVar(&o.chaos, "chaos", false, "run the chaos program too for the mutants that name a run of it: half a minute each, and more")
	flags.StringVar(&o.try, "try", "", "run the tests that match this `regexp`, not those that the mutants name, to find out which of them catch one")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if o.pattern, err = regexp.Compile(*pattern); err != nil {
		return nil, fmt.Errorf("mutants: -run: %w", err)
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("mutants: unexpected argument %q: use -run to choose mutants", flags.Arg(0))
	case o.parallel < 1:
		return nil, fmt.Errorf("mutants: -parallel %d: at least one must run", o.parallel)
	case o.tool.timeout <= 0:
		return nil, fmt.Errorf("mutants: -timeout %v must be positive", o.tool.timeout)
	case o.markdown != "" && o.try != "":
		return nil, errors.New("mutants: -markdown is for the tests that mutants name: leave -try out")
	}
	return o, nil
}

func mutantsMain(ctx context.Context, args []string, all []Mutant, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitCaught
	}
	var list []Mutant
	if err == nil {
		list = slices.DeleteFunc(slices.Clone(all), func(m Mutant) bool { return !o.pattern.MatchString(m.Name) })
		if len(list) == 0 {
			err = errors.New("mutants: no mutant has such a name: see -list")
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitTrouble
	}
	if o.list {
		for _, m := range list {
			fmt.Fprintf(stdout, "%-32s %s\n", m.Name, m.Rule)
		}
		return exitCaught
	}
	o.out = stdout
	verdicts, err := o.work(ctx, list)
	if err == nil && o.markdown != "" && ctx.Err() == nil { // the verdicts of a run that was cut short are no table
		err = writeTable(o.markdown, all, verdicts)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitTrouble
	}
	return conclude(stdout, verdicts)
}

// work runs the checks with nothing broken and then with each mutant.
func (o *options) work(ctx context.Context, list []Mutant) ([]*verdict, error) {
	var err error
	if o.tool.root == "" {
		if o.tool.root, err = repositoryRoot("."); err != nil {
			return nil, err
		}
	}
	if o.try == "" {
		if err := o.baseline(ctx, list); err != nil {
			return nil, err
		}
	}
	if o.chaos {
		if err := o.calmly(ctx, list); err != nil {
			return nil, err
		}
	}
	return o.all(ctx, list), nil
}

// calmly is calm with a directory and an overlay that replaces nothing.
func (o *options) calmly(ctx context.Context, list []Mutant) error {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	defer os.RemoveAll(dir)
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, []byte("{}"), 0o600); err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	return o.calm(ctx, overlay, dir, list)
}

// conclude prints the sum and returns the exit code.
func conclude(out io.Writer, verdicts []*verdict) int {
	survived, wrong := 0, 0
	for _, v := range verdicts {
		switch {
		case v.err != nil:
			wrong++
		case v.survived():
			survived++
		}
	}
	fmt.Fprintf(out, "%d mutants: %d caught, %d survived, %d show nothing\n", len(verdicts), len(verdicts)-survived-wrong, survived, wrong)
	switch {
	case wrong > 0:
		return exitTrouble
	case survived > 0:
		return exitSurvived
	}
	return exitCaught
}
