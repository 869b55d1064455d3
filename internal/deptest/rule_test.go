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

func TestModule(t *testing.T) {
	inTree(t, func(string, func() string) {}) // so that the go command reruns the test when a file changes
	graph, err := Load("", module+"/...")
	require.NoError(t, err)
	for _, rule := range Rules() {
		for _, violation := range rule.Check(graph) {
			t.Error(violation)
		}
	}
}

// Each rule says why, and sees what it forbids, also through a package between, but for those that
// it excepts. Without a subject it is a violation.
func TestRulesReportWhatTheyForbid(t *testing.T) {
	for _, rule := range Rules() {
		require.NotEmpty(t, rule.Why)
		subject := strings.TrimSuffix(rule.Subject[0], "/...")
		for _, pattern := range rule.Forbidden {
			forbidden := strings.TrimSuffix(pattern, "/...")
			graph := Graph{subject: {"between", "another"}, "between": {"fmt", forbidden}, "another": {subject}}
			for _, except := range rule.Except {
				graph[strings.TrimSuffix(except, "/...")] = []string{forbidden}
			}
			want := Violation{Rule: rule, Chain: []string{subject, "between", forbidden}}
			require.Equal(t, []Violation{want}, rule.Check(graph))
			require.Contains(t, want.String(), subject+" -> between -> "+forbidden)
			require.Contains(t, want.String(), rule.Why)
		}
		none := rule.Check(Graph{"another": {rule.Forbidden[0]}})
		require.Equal(t, []Violation{{Rule: rule}}, none)
		require.Contains(t, none[0].String(), "no package matches "+rule.Subject[0])
	}
}

// Load follows imports through packages and leaves _test files out.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module fixture.example\n\ngo 1.26\n",
		"top/top.go":     "package top\n\nimport _ \"fixture.example/mid\"\n",
		"mid/mid.go":     "package mid\n\nimport _ \"expvar\"\n",
		"mid/in_test.go": "package mid\n\nimport _ \"testing/fstest\"\n",
		"mid/ex_test.go": "package mid_test\n\nimport _ \"testing/iotest\"\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")

	graph, err := Load(dir, "./...")
	require.NoError(t, err)
	chain := func(path string) []string {
		return graph.chain("fixture.example/top", func(dep string) bool { return dep == path })
	}
	require.Equal(t, []string{"fixture.example/top", "fixture.example/mid", "expvar"}, chain("expvar"))
	require.NotNil(t, chain("net/http"), "what the standard library imports counts too")
	require.Nil(t, chain("testing/fstest"))
	require.Nil(t, chain("testing/iotest"))

	broken := "package mid\n\nimport _ \"fixture.example/missing\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mid", "mid.go"), []byte(broken), 0o644))
	_, err = Load(dir, "./...")
	require.ErrorContains(t, err, "fixture.example/missing")
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
