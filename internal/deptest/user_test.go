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
)

// maxModules is how many modules are in the graph of a program that uses all packages of this one:
// its own, this one, what go.mod requires, and what the modules that the program builds require.
const maxModules = 35

// Every requirement of go.mod takes part in the choice of versions of each program that uses this
// module, also where only tests need it.
func TestModulesOfAUser(t *testing.T) {
	root := filepath.Join("..", "..")
	visitDirectories(t, root)
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)

	program := "package main\n\n"
	for _, name := range []string{"admin", "elector", "otel", "redlock", "scheduler", "web"} {
		program += fmt.Sprintf("import _ %q\n", module+"/"+name)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  fmt.Sprintf("module user.example\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", module, absolute),
		"go.sum":  string(sums), // all that are needed are known, so that nobody is asked for them
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
	root := filepath.Join("..", "..")
	visitDirectories(t, root)
	var file struct {
		Require []struct{ Path, Version string }
	}
	require.NoError(t, json.Unmarshal([]byte(goCommand(t, root, "mod", "edit", "-json")), &file))
	var required []string
	args := []string{"list", "-m"}
	for _, r := range file.Require {
		required = append(required, r.Path+" "+r.Version)
		args = append(args, r.Path)
	}
	chosen := strings.Split(strings.TrimSpace(goCommand(t, root, args...)), "\n")
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
