package main

import (
	"fmt"
	"runtime/debug"

	"github.com/tenure-dev/tenure/tools/soak/cast"
	"github.com/tenure-dev/tenure/tools/soak/replica"
)

// way is one of those to have replicas share the runs of gocron's jobs.
type way struct {
	name string
	play func(role *cast.Role, s replica.Settings) (stop func() error, err error)
}

func ways() []way {
	return []way{
		// A replica of the soak finds its settings among those of this program.
		{"Tenure, five servers", func(role *cast.Role, _ replica.Settings) (func() error, error) { return replica.Play(role) }},
		{fmt.Sprintf("gocron-redis-lock %s, one server", version("github.com/go-co-op/gocron-redis-lock/v2")), playPlugin},
		{fmt.Sprintf("redsync %s in the same way, five servers", version("github.com/go-redsync/redsync/v4")), playRedsync},
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

// play is a replica process.
func play(role *cast.Role) (func() error, error) {
	var s settings
	if err := role.Settings(&s); err != nil {
		return nil, err
	}
	for _, w := range ways() {
		if w.name == s.Way {
			return w.play(role, s.Settings)
		}
	}
	return nil, fmt.Errorf("unknown way %q", s.Way)
}
