// Package deptest has the import rules of this repository, and tests that compare its pages,
// scripts and workflows with its code.
package deptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rules say of packages on what they must not depend, in what their non-test files reach. Each name
// means what is below it, too.
var rules = []struct{ of, not, why string }{
	{"./redlock", above + library, "dependencies point down only: a lease knows nothing of leaders or jobs, and its users need neither"},
	{"./redlock", "./internal/board ./internal/bulletin",
		"who decides does not tell: what processes say to people is above leases, and reads nothing that decides but by the bridge"},
	{lower + "wire", "./internal/clock " + lower + "node " + lower + "vote " + lower + "waitqueue " + lower + "roster " + lower + "clocks",
		"wire is the lowest layer: it says what is sent and what an answer means, and knows no node, no round and no time"},
	{lower + "node", lower + "vote " + lower + "waitqueue " + lower + "roster " + lower + "clocks",
		"a node knows one server: who counts its answers, and who waits for a key, is above it"},
	{lower + "vote", lower + "node " + lower + "waitqueue " + lower + "roster " + lower + "clocks", "a vote counts answers, wherever they come from"},
	{lower + "roster", lower + "listen " + lower + "waitqueue " + lower + "clocks",
		"who belongs to the nodes is decided before anybody has a lease or waits for one"},
	{lower + "clocks", lower + "vote " + lower + "listen " + lower + "waitqueue " + lower + "roster",
		"the servers' clocks are compared as they were sampled, whatever they are used for"},
	{"./elector", "./scheduler ./admin ./health ./web " + library,
		"dependencies point down only: an election knows nothing of jobs, and a service without gocron can lead"},
	{"./admin", "./scheduler ./health ./web " + library, "who steers jobs need not be able to run them"},
	{"./health", "./scheduler ./admin ./web " + library, "a service without jobs has probes too: what is asked is an interface, which the Scheduler has"},
	{"./scheduler", "./admin ./health ./web", "jobs are run without anybody who steers them, and without an HTTP server"},
	{"./internal/joblog ./internal/timetable", "./redlock ./elector " + library,
		"what a job owes is computed from its record, its table and a time, so that an oracle can check it"},
	{"./web", "./scheduler " + library, "a page shows what replicas say, from any process, also one that runs no jobs"},
	{"./web", "html/template text/template",
		"a template calls methods by their names, so the linker can leave out none of a user's whole program: the page cost 13 MB"},
	{"./otel", "go.opentelemetry.io/otel/sdk go.opentelemetry.io/otel/exporters go.opentelemetry.io/proto github.com/prometheus",
		"instrumentation needs OpenTelemetry's API only: which SDK and which exporters there are is the program's choice"},
	{"./redlock " + above, "go.opentelemetry.io", "OpenTelemetry plugs into the tracer interfaces from outside: who does not use it does not build it"},
	{"./redlock " + above + "./otel ./cmd", "./internal/valkeytest ./internal/child ./redlock/redlocktest github.com/Shopify/toxiproxy " +
		"github.com/alicebob/miniredis github.com/anishathalye/porcupine github.com/stretchr/testify go.uber.org/goleak modernc.org/sqlite pgregory.net/rapid",
		"what tests run on stays out of users' binaries"},
}

const (
	module  = "github.com/tenure-dev/tenure"
	library = "github.com/go-co-op/gocron"
	above   = "./elector ./scheduler ./admin ./health ./web "
	lower   = "./redlock/internal/"
)

// within reports whether a package is one of those named, or below one.
func within(path string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		if own, is := strings.CutPrefix(name, "./"); is {
			name = module + "/" + own
		}
		return path == name || strings.HasPrefix(path, name+"/")
	})
}

func TestImports(t *testing.T) {
	inTree(t, func(string, func() string) {}) // so that the go command reruns the test when a file changes
	reached := make(map[string][]string)
	for in := json.NewDecoder(strings.NewReader(goCommand(t, top, "list", "-json=ImportPath,Deps", "./...", "./cmd/tenure/..."))); in.More(); {
		var p struct {
			ImportPath string
			Deps       []string
		}
		require.NoError(t, in.Decode(&p))
		reached[p.ImportPath] = p.Deps
	}
	require.True(t, slices.ContainsFunc(reached[module+"/scheduler"], func(dep string) bool { return within(dep, []string{library}) }), "what is imported is seen")
	for _, rule := range rules {
		not := strings.Fields(rule.not)
		for of := range strings.FieldsSeq(rule.of) {
			found := false
			for path, deps := range reached {
				if !within(path, []string{of}) || path == module+"/redlock/redlocktest" {
					continue
				}
				found = true
				if i := slices.IndexFunc(deps, func(dep string) bool { return within(dep, not) }); i >= 0 {
					t.Errorf("%s must not depend on %s: %s", path, deps[i], rule.why)
				}
			}
			require.True(t, found, "rename %s in the rule with the package", of)
		}
	}
}

// maxModules is how many modules are in the graph of a program that uses all packages of this one:
// its own, this one, what go.mod requires, and what the modules that the program builds require.
const maxModules = 35

// Every requirement of go.mod takes part in the choice of versions of each program that uses this
// module, also where only tests need it.
func TestModulesOfAUser(t *testing.T) {
	inTree(t, func(string, func() string) {})
	absolute, err := filepath.Abs(top)
	require.NoError(t, err)

	program := "package main\n\n"
	for _, name := range []string{"admin", "elector", "health", "otel", "redlock", "scheduler", "web"} {
		program += fmt.Sprintf("import _ %q\n", module+"/"+name)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  fmt.Sprintf("module user.example\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", module, absolute),
		"go.sum":  readTop(t, "go.sum"), // all that are needed are known, so that nobody is asked for them
		"main.go": program + "\nfunc main() {}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")

	// What go mod tidy writes, and what go list -m all prints after it. Those two ask for more of
	// the modules than their requirements, and the cache may not have it.
	goCommand(t, dir, "list", "-mod=mod", "-deps", ".")
	modules := make(map[string]bool)
	for _, end := range strings.Fields(goCommand(t, dir, "mod", "graph")) {
		if path, _, _ := strings.Cut(end, "@"); path != "go" && path != "toolchain" {
			modules[path] = true
		}
	}
	require.Contains(t, modules, module)
	require.LessOrEqual(t, len(modules), maxModules,
		"a user of this module gets more modules than before: have what only the tools or the examples need required "+
			"by tools/go.mod or examples/go.mod, and move a test that needs it there; if users have to bear it, say why "+
			"under Dependencies in CONTRIBUTING.md and raise maxModules\n%s",
		strings.Join(slices.Sorted(maps.Keys(modules)), "\n"))
}

// Tests run in the workspace, programs of users do not: both have the same versions.
func TestWorkspaceKeepsTheVersionsOfTheModule(t *testing.T) {
	inTree(t, func(string, func() string) {})
	var file struct {
		Require []struct{ Path, Version string }
	}
	require.NoError(t, json.Unmarshal([]byte(goCommand(t, top, "mod", "edit", "-json")), &file))
	var required []string
	args := []string{"list", "-m"}
	for _, r := range file.Require {
		required = append(required, r.Path+" "+r.Version)
		args = append(args, r.Path)
	}
	chosen := strings.Split(strings.TrimSpace(goCommand(t, top, args...)), "\n")
	require.Equal(t, required, chosen,
		"another module of go.work wants a newer version than go.mod has: run go work sync && make tidy, "+
			"or have that module want less")
}

// goCommand runs the go command in dir and returns what it prints.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %s:\n%s", strings.Join(args, " "), &stderr)
	return string(out)
}
