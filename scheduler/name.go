package scheduler

import (
	"context"
	"fmt"
	"regexp"

	"github.com/tenure-dev/tenure/redlock"
)

// compilerName matches what runtime.Func.Name gives for anonymous functions (pkg.f.func1,
// pkg.f.func1.2), method values (pkg.T.M-fm) and instances of generic functions (pkg.f[...]).
// gocron takes it for the name of a job that was given none.
var compilerName = regexp.MustCompile(`\.func\d+(\.\d+)*$|\.\w+-fm$|\[\.\.\.\]`)

// key returns the key of the lease of the job that is called name.
func (c *commonConfig) key(name string) (string, error) {
	const option = "gocron.WithName"
	if name == "" {
		return "", &OptionError{Option: option, Reason: "the job's name is empty: give it one of its own"}
	}
	if longest := redlock.MaxKeyLength - len(c.keyPrefix); len(name) > longest {
		return "", &OptionError{Option: option, Reason: fmt.Sprintf(
			"the job's name has %d bytes, more than %d: give it a shorter one", len(name), longest)}
	}
	return c.keyPrefix + name, nil
}

// checkName logs a name that the compiler made, once.
func (l *Locker) checkName(ctx context.Context, name string) {
	if !compilerName.MatchString(name) {
		return
	}
	if _, logged := l.warned.LoadOrStore(name, struct{}{}); logged {
		return
	}
	l.cfg.logger.WarnContext(ctx, "scheduler: the job's name is made by the compiler, is shared by functions made in a loop "+
		"and changes between builds: name the job with gocron.WithName", "job", name)
}
