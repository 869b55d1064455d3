package main

import (
	"fmt"
	"runtime/debug"

	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/soak/replica"
)

// way is one of those to have replicas share the runs of gocron's jobs.
type way struct {
	name  string
	begin func(p *clients.Process, s replica.Settings) (end func() error, err error)
}

func ways() []way {
	return []way{
		// A replica of the soak finds its settings among those of this program.
		{"Tenure, five servers", func(p *clients.Process, _ replica.Settings) (func() error, error) { return replica.Begin(p) }},
		{fmt.Sprintf("gocron-redis-lock %s, one server", version("github.com/go-co-op/gocron-redis-lock/v2")), beginPlugin},
		{fmt.Sprintf("redsync %s in the same way, five servers", version("github.com/go-redsync/redsync/v4")), beginRedsync},
	}
}

// version is that of a module in this program.
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return "of unknown version"
}

// begin begins a replica process.
func begin(p *clients.Process) (func() error, error) {
	var s settings
	if err := p.Settings(&s); err != nil {
		return nil, err
	}
	for _, w := range ways() {
		if w.name == s.Way {
			return w.begin(p, s.Settings)
		}
	}
	return nil, fmt.Errorf("unknown way %q", s.Way)
}
