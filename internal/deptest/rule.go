// Package deptest holds the import rules of this repository, which its test checks:
// which package must not depend on which other, and why. Another test counts the
// modules that a program gets that uses this one.
//
// A rule speaks of everything that a package's non-test files reach, directly
// or through other packages. Imports of _test files are nobody's burden but
// this repository's and are left alone.
package deptest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const module = "github.com/tenure-dev/tenure"

// Rule forbids the packages that match Subject, less those that match Except,
// to depend on packages that match Forbidden. Patterns are import paths; one
// that ends in "/..." also matches everything below.
type Rule struct {
	Subject   []string
	Except    []string
	Forbidden []string
	Why       string
}

// Violation is a forbidden dependency, or a rule that no longer has a subject.
type Violation struct {
	Rule  Rule
	Chain []string // imports from the subject to the forbidden package; nil: no subject
}

func (v Violation) String() string {
	if v.Chain == nil {
		return fmt.Sprintf("no package matches %s: rename the subject of the rule with the package\n\twhy the rule is there: %s",
			strings.Join(v.Rule.Subject, ", "), v.Rule.Why)
	}
	return fmt.Sprintf("%s must not depend on %s\n\timports: %s\n\twhy: %s",
		v.Chain[0], v.Chain[len(v.Chain)-1], strings.Join(v.Chain, " -> "), v.Rule.Why)
}

// Check returns the rule's violations in graph, one for each offending subject
// with the shortest chain of imports, in the order of their paths.
func (r Rule) Check(graph Graph) []Violation {
	var found []Violation
	subjects := 0
	for _, path := range slices.Sorted(maps.Keys(graph)) {
		if !matches(r.Subject, path) || matches(r.Except, path) {
			continue
		}
		subjects++
		chain := graph.chain(path, func(dep string) bool { return matches(r.Forbidden, dep) })
		if chain != nil {
			found = append(found, Violation{Rule: r, Chain: chain})
		}
	}
	if subjects == 0 {
		return []Violation{{Rule: r}}
	}
	return found
}

// Rules returns the import rules of this repository. A forbidden package need not
// exist; a subject must.
func Rules() []Rule {
	inside := func(name string) string { return module + "/redlock/internal/" + name + "/..." }
	var (
		all       = []string{module + "/..."}
		redlock   = []string{module + "/redlock/..."}
		elector   = []string{module + "/elector/..."}
		scheduler = []string{module + "/scheduler/..."}
		admin     = []string{module + "/admin/..."}
		health    = []string{module + "/health/..."}
		web       = []string{module + "/web/..."}
		parts     = slices.Concat(redlock, elector, scheduler, admin, health, web)

		board       = []string{module + "/internal/board/...", module + "/internal/bulletin/..."}
		redlocktest = []string{module + "/redlock/redlocktest/..."}
		wire        = []string{inside("wire")}
		examples    = []string{module + "/examples/..."}
		tools       = []string{module + "/tools/..."}
		commands    = []string{module + "/cmd/..."}
		servers     = []string{module + "/internal/valkeytest/..."}
		child       = []string{module + "/internal/child/..."}
		processes   = slices.Concat(servers, child)
		torture     = []string{module + "/tools/torture/..."}

		gocron    = []string{"github.com/go-co-op/gocron/..."}
		telemetry = []string{"go.opentelemetry.io/..."}
		testOnly  = []string{
			"github.com/Shopify/toxiproxy/...",
			"github.com/alicebob/miniredis/...",
			"github.com/anishathalye/porcupine/...",
			"github.com/stretchr/testify/...",
			"go.uber.org/goleak/...",
			"modernc.org/sqlite/...",
			"pgregory.net/rapid/...",
		}
	)
	return []Rule{
		{
			Subject:   all,
			Except:    slices.Concat(tools, examples),
			Forbidden: slices.Concat(tools, examples),
			Why:       "the tools and the examples are modules of their own, so that what they need is in no user's module graph",
		},
		{
			Subject:   all,
			Except:    commands,
			Forbidden: commands,
			Why:       "a command is a module of its own, so that what it needs is in no user's module graph",
		},
		{
			Subject:   redlock,
			Except:    redlocktest,
			Forbidden: slices.Concat(elector, scheduler, admin, gocron),
			Why:       "dependencies point down only: a lease knows nothing of leaders or jobs, and its users need neither",
		},
		{
			Subject:   redlock,
			Except:    redlocktest,
			Forbidden: board,
			Why:       "who decides does not tell: what processes say to people is above leases, and reads nothing that decides but by the bridge",
		},
		{
			Subject:   wire,
			Forbidden: []string{module + "/internal/clock/...", inside("node"), inside("vote"), inside("waitqueue"), inside("roster"), inside("clocks")},
			Why:       "wire is the lowest layer: it says what is sent and what an answer means, and knows no node, no round and no time",
		},
		{
			Subject:   []string{inside("node")},
			Forbidden: []string{inside("vote"), inside("waitqueue"), inside("roster"), inside("clocks")},
			Why:       "a node knows one server: who counts its answers, and who waits for a key, is above it",
		},
		{
			Subject:   []string{inside("vote")},
			Forbidden: []string{inside("node"), inside("waitqueue"), inside("roster"), inside("clocks")},
			Why:       "a vote counts answers, wherever they come from",
		},
		{
			Subject:   []string{inside("roster")},
			Forbidden: []string{inside("listen"), inside("waitqueue"), inside("clocks")},
			Why:       "who belongs to the nodes is decided before anybody has a lease or waits for one",
		},
		{
			Subject:   []string{inside("clocks")},
			Forbidden: []string{inside("vote"), inside("listen"), inside("waitqueue"), inside("roster")},
			Why:       "the servers' clocks are compared as they were sampled, whatever they are used for",
		},
		{
			Subject:   elector,
			Forbidden: slices.Concat(scheduler, admin, gocron),
			Why:       "dependencies point down only: an election knows nothing of jobs, and a service without gocron can lead",
		},
		{
			Subject:   admin,
			Forbidden: slices.Concat(scheduler, gocron),
			Why:       "who steers jobs need not be able to run them",
		},
		{
			Subject:   health,
			Forbidden: slices.Concat(scheduler, admin, gocron),
			Why:       "a service without jobs has probes too: what is asked is an interface, which the Scheduler has",
		},
		{
			Subject:   slices.Concat(redlock, elector, scheduler, admin),
			Forbidden: health,
			Why:       "dependencies point down only: how a supervisor asks is the program's choice",
		},
		{
			Subject:   scheduler,
			Forbidden: admin,
			Why:       "jobs are run without anybody who steers them",
		},
		{
			Subject:   []string{module + "/internal/joblog", module + "/internal/timetable"},
			Forbidden: slices.Concat(redlock, elector, gocron),
			Why:       "what a job owes is computed from its record, its table and a time, so that an oracle can check it",
		},
		{
			Subject:   slices.Concat(redlock, elector, scheduler, admin),
			Forbidden: web,
			Why:       "who shows no page has no HTTP server in the program",
		},
		{
			Subject:   web,
			Forbidden: slices.Concat(scheduler, gocron),
			Why:       "a page shows what replicas say, from any process, also one that runs no jobs",
		},
		{
			Subject:   web,
			Forbidden: []string{"html/template/...", "text/template/..."},
			Why:       "a template calls methods by their names, so the linker can leave out none of a user's whole program: the page cost 13 MB",
		},
		{
			Subject:   all,
			Except:    slices.Concat(redlocktest, examples, torture),
			Forbidden: testOnly,
			Why:       "test libraries stay out of users' binaries: only _test files, examples, redlocktest, and the torture program may use them",
		},
		{
			Subject:   []string{module + "/otel/..."},
			Forbidden: []string{"go.opentelemetry.io/otel/sdk/...", "go.opentelemetry.io/otel/exporters/...", "go.opentelemetry.io/proto/...", "github.com/prometheus/..."},
			Why:       "instrumentation needs OpenTelemetry's API only: which SDK and which exporters there are is the program's choice",
		},
		{
			Subject:   all,
			Except:    slices.Concat(processes, tools),
			Forbidden: servers,
			Why:       "valkeytest starts processes: only _test files and the tools may use it",
		},
		{
			Subject:   all,
			Except:    slices.Concat(processes, tools, examples),
			Forbidden: child,
			Why:       "child starts processes: only _test files, the tools and the examples may use it",
		},
		{
			Subject:   parts,
			Except:    redlocktest,
			Forbidden: telemetry,
			Why:       "OpenTelemetry plugs into the tracer interfaces from outside: who does not use it does not build it",
		},
		{
			Subject:   parts,
			Except:    redlocktest,
			Forbidden: redlocktest,
			Why:       "in-process nodes are for tests and examples: a real quorum must not be able to reach them",
		},
	}
}
