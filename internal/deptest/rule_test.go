package deptest

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModule(t *testing.T) {
	visitDirectories(t, filepath.Join("..", ".."))
	graph, err := Load("", module+"/...")
	require.NoError(t, err)
	for _, rule := range Rules() {
		for _, violation := range rule.Check(graph) {
			t.Error(violation)
		}
	}
}

// visitDirectories reads every source directory of the repository. The go command
// then reruns the test when a file changes; of what go list reads it knows
// nothing and would repeat a cached pass.
func visitDirectories(t *testing.T, root string) {
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path != root && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		return err
	}))
}

// layered returns a module that keeps every rule.
func layered() Graph {
	const miniredis, inside = "github.com/alicebob/miniredis/v2", module + "/redlock/internal"
	const wire, node, vote = inside + "/wire", inside + "/node", inside + "/vote"
	const waitqueue, roster, clocks = inside + "/waitqueue", inside + "/roster", inside + "/clocks"
	const joblog, timetable = module + "/internal/joblog", module + "/internal/timetable"
	return Graph{
		module + "/redlock":             {"context", module + "/internal/clock", waitqueue, roster, clocks, node, vote, wire},
		roster:                          {module + "/internal/clock", node, vote, wire},
		waitqueue:                       {node, wire},
		clocks:                          {module + "/internal/clock", node, wire},
		node:                            {module + "/internal/clock", wire},
		vote:                            {module + "/internal/clock", wire},
		wire:                            {module + "/internal/resp"},
		module + "/redlock/redlocktest": {miniredis, module + "/redlock"},
		module + "/elector":             {module + "/redlock"},
		module + "/scheduler":           {"github.com/go-co-op/gocron/v2", module + "/elector"},
		joblog:                          {"time"},
		timetable:                       {joblog},
		module + "/admin":               {module + "/redlock"},
		module + "/health":              {module + "/elector"},
		module + "/web":                 {"net/http", module + "/admin"},
		module + "/otel":                {"go.opentelemetry.io/otel", module + "/scheduler"},
		module + "/examples/quickstart": {module + "/redlock/redlocktest", module + "/scheduler"},
		module + "/cmd/tenure":          {module + "/admin", "github.com/spf13/cobra"},
		module + "/tools/torture":       {module + "/internal/valkeytest", "github.com/Shopify/toxiproxy/v2"},
		module + "/internal/clock":      {"time"},
		module + "/internal/child":      {"os/exec"},
		module + "/internal/valkeytest": {module + "/internal/child"},
	}
}

func TestLayeredModuleKeepsTheRules(t *testing.T) {
	for _, rule := range Rules() {
		require.Empty(t, rule.Check(layered()), rule.Why)
	}
}

// Each rule sees each package it forbids, imported by each of its subjects
// through a package between them.
func TestRulesReportWhatTheyForbid(t *testing.T) {
	for i, rule := range Rules() {
		require.NotEmpty(t, rule.Why)
		for _, pattern := range rule.Forbidden {
			forbidden := strings.TrimSuffix(pattern, "/...") + "/deep"
			for subject := range maps.Keys(layered()) {
				if !matches(rule.Subject, subject) || matches(rule.Except, subject) {
					continue
				}
				t.Run(fmt.Sprintf("%d/%s/%s", i, strings.TrimPrefix(subject, module+"/"), pattern), func(t *testing.T) {
					graph := layered()
					graph[subject] = append(graph[subject], "example.com/between")
					graph["example.com/between"] = []string{"fmt", forbidden}

					want := Violation{Rule: rule, Chain: []string{subject, "example.com/between", forbidden}}
					require.Contains(t, rule.Check(graph), want)
					require.Contains(t, want.String(), subject+" -> example.com/between -> "+forbidden)
					require.Contains(t, want.String(), rule.Why)
				})
			}
		}
	}
}

func TestRulesCover(t *testing.T) {
	const (
		redlock    = module + "/redlock"
		elector    = module + "/elector"
		health     = module + "/health"
		scheduler  = module + "/scheduler"
		inProcess  = module + "/redlock/redlocktest"
		valkeytest = module + "/internal/valkeytest"
		child      = module + "/internal/child"
		quickstart = module + "/examples/quickstart"
		torture    = module + "/tools/torture"
		command    = module + "/cmd/tenure"
		gocron     = "github.com/go-co-op/gocron/v2"
		telemetry  = "go.opentelemetry.io/otel/trace"
		testify    = "github.com/stretchr/testify/require"
	)
	for _, tc := range []struct {
		from, to string
		reported bool
	}{
		{redlock, elector, true},
		{redlock, scheduler, true},
		{redlock, gocron, true},
		{redlock, telemetry, true},
		{redlock, inProcess, true},
		{redlock, testify, true},
		{redlock, "github.com/alicebob/miniredis/v2", true},
		{redlock + "/internal/wire", gocron, true},
		{elector, scheduler, true},
		{elector, gocron, true},
		{elector, telemetry, true},
		{elector, inProcess, true},
		{elector, health, true},
		{health, scheduler, true},
		{health, telemetry, true},
		{scheduler, telemetry, true},
		{scheduler, inProcess, true},
		{scheduler, "pgregory.net/rapid", true},
		{module + "/internal/joblog", redlock, true},
		{module + "/internal/timetable", gocron, true},
		{module + "/otel", "go.uber.org/goleak", true},
		{module + "/otel", inProcess, true}, // through it, miniredis
		{quickstart, valkeytest, true},
		{inProcess, valkeytest, true},
		{redlock, torture, true},
		{redlock, command, true},
		{torture, command, true},
		{command, valkeytest, true},
		{command, testify, true},
		{redlock, child, true},
		{valkeytest, quickstart, true},

		{scheduler, gocron, false},
		{scheduler, elector, false},
		{module + "/otel", telemetry, false},
		{inProcess, testify, false},
		{quickstart, testify, false},
		{quickstart, child, true},
		{torture, quickstart, false},
		{command, scheduler, false},
		{quickstart, telemetry, false},
		{redlock, "go.opentelemetry.iox/otel", false},
	} {
		graph := layered()
		graph[tc.from] = append(graph[tc.from], tc.to)
		var violations []Violation
		for _, rule := range Rules() {
			violations = append(violations, rule.Check(graph)...)
		}
		reported := slices.ContainsFunc(violations, func(v Violation) bool { return v.Chain[0] == tc.from })
		require.Equal(t, tc.reported, reported, "%s imports %s: %v", tc.from, tc.to, violations)
	}
}

func TestRuleWithoutSubjectIsReported(t *testing.T) {
	for _, name := range []string{"redlock", "elector", "scheduler", "admin", "health", "web"} {
		graph := layered()
		maps.DeleteFunc(graph, func(path string, _ []string) bool {
			return path == module+"/"+name || strings.HasPrefix(path, module+"/"+name+"/internal/")
		})
		var violations []Violation
		for _, rule := range Rules() {
			violations = append(violations, rule.Check(graph)...)
		}
		require.NotEmpty(t, violations, name)
		for _, violation := range violations {
			require.Nil(t, violation.Chain)
			require.Contains(t, violation.String(), "no package matches "+module+"/"+name)
		}
	}
}
