package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/tenure-dev/tenure/internal/view"
)

// program is one call of tenure: its streams, its environment and its flags. Nothing else of the
// process is read or written, so that tests call it in process.
type program struct {
	in       io.Reader
	out, err io.Writer
	environ  []string // NAME=value, as os.Environ returns it

	connection connection         // flags of all commands that speak to nodes
	settings   map[string]setting // what was given for flags of all commands, by the flag's variable
	log        string             // of --log
	output     string             // of -o
	as, why    string             // of --as and --why
	wait       bool               // of --wait of an order
	begun      bool               // the command line can be carried out
	unwritten  error              // why something that was to be shown is not
}

// run carries out one command line, without the program's name, and returns the exit code. An error
// is a line on the error stream, and one more with what to do where that is known.
func (p *program) run(ctx context.Context, args []string) int {
	root := newRoot(p)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !p.begun {
		words := strings.Join(strings.Fields(err.Error()), " ") // what cobra suggests is on further lines
		err = usage(fmt.Errorf("%s: see %s --help", words, cmd.CommandPath()))
	}
	if p.unwritten != nil {
		unwritten := fmt.Errorf("the output cannot be written: %w", p.unwritten)
		if code := exitCode(err); code > exitFaults { // what came of it says more
			err = exit(code, errors.Join(err, unwritten))
		} else {
			err = exit(exitUnwritten, unwritten)
		}
	}
	if told, typed := errors.AsType[*exitError](err); err != nil && !(typed && told.err == nil) {
		fmt.Fprintln(p.err, "tenure: "+line(strings.ReplaceAll(view.Said(err), "\n", "; "))) // those of errors.Join
		if advice := advise(cmd.Name(), err); advice != "" {
			fmt.Fprintln(p.err, "tenure: "+advice)
		}
	}
	return exitCode(err)
}

// Write writes what is shown, and notes where it could not be.
func (p *program) Write(text []byte) (done int, err error) {
	done, err = p.out.Write(text)
	p.unwritten = cmp.Or(p.unwritten, err)
	return done, err
}

// lookup returns a variable of the environment; empty for none. As for os/exec, the last of several
// counts.
func (p *program) lookup(name string) string {
	for _, v := range slices.Backward(p.environ) {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// logger writes lines of a level and above to the error stream: that of --log, or the command's
// own. Commands that ask or order are silent (levelOff), because their errors say what the lines
// would.
func (p *program) logger(byDefault slog.Level) *slog.Logger {
	level, _ := levelOf(p.log, byDefault) // fromEnvironment has looked at it
	if level >= levelOff {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: level}))
}

// levelOff is above all levels.
const levelOff = slog.Level(1 << 16)

// levelOf reads --log.
func levelOf(text string, byDefault slog.Level) (level slog.Level, err error) {
	switch text {
	case "":
		return byDefault, nil
	case "off":
		return levelOff, nil
	}
	if level.UnmarshalText([]byte(text)) != nil {
		err = errors.New("it is none of debug, info, warn, error and off")
	}
	return level, err
}
