package deptest

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var top = filepath.Join("..", "..")

// readTop reads a file by its path from the top of the repository.
func readTop(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	require.NoError(t, err)
	return string(text)
}

// inTree shows each file that may be of the repository: its path from the top, and a function that
// reads it.
func inTree(t *testing.T, see func(name string, text func() string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		name, err := filepath.Rel(top, file)
		see(filepath.ToSlash(name), func() string { return readTop(t, name) })
		return err
	}))
}

// matchesIn are all that the first group of a pattern matches in a file.
func matchesIn(t *testing.T, name, pattern string) (all []string) {
	t.Helper()
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(readTop(t, name), -1) {
		all = append(all, match[1])
	}
	require.NotEmpty(t, all, "%s: %s", name, pattern)
	return all
}

// image is what workflows and the development container run in: go.mod's Go on the Debian that the
// tests are made for.
func image(t *testing.T) string {
	return "golang:" + matchesIn(t, "go.mod", `(?m)^go (\d+\.\d+)`)[0] + "-bookworm"
}

// requireCommand checks that what a command names is there: a target, a script, and what is
// installed or tested by name.
func requireCommand(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(command)
	switch words[0] {
	case "git":
	case "make":
		require.Subset(t, matchesIn(t, "Makefile", `(?m)^([a-z0-9-]+):.*## `), words[1:], command)
	case "scripts/install.sh":
		require.Subset(t, matchesIn(t, words[0], `(?m)^#   ([a-z]+) `), words[1:], command)
		fallthrough
	case "scripts/servers.sh", ".ci/run":
		info, err := os.Stat(filepath.Join(top, words[0]))
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&0o111, command)
	default:
		t.Fatalf("%s is no command that this test knows", command)
	}
}

// Workflows may read and no more, end, use actions that cannot change, and run what is there. The
// nightly one tries each server that scripts/servers.sh knows, so that none is skipped in silence.
func TestWorkflows(t *testing.T) {
	runs := make(map[string][]string)
	for _, name := range []string{"ci.yml", "nightly.yml"} {
		var w struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Container string
				Timeout   int `yaml:"timeout-minutes"`
				Strategy  struct{ Matrix struct{ Server []string } }
				Steps     []struct{ Uses, Run string }
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(readTop(t, ".github/workflows/"+name)), &w))
		require.Equal(t, map[string]string{"contents": "read"}, w.Permissions, name)
		for job, j := range w.Jobs {
			require.Equal(t, image(t), j.Container, job)
			require.True(t, j.Timeout > 0 && j.Timeout <= 360, "%s: GitHub ends a job after six hours, and tells nobody which test hung", job)
			for _, step := range j.Steps {
				if step.Run == "" {
					require.Regexp(t, `^actions/[a-z-]+@[0-9a-f]{40}$`, step.Uses, job)
					continue
				}
				requireCommand(t, step.Run)
				runs[name] = append(runs[name], step.Run)
				if strings.HasPrefix(step.Run, "scripts/servers.sh ") {
					require.Equal(t, "scripts/servers.sh ${{ matrix.server }}", step.Run)
					require.Equal(t, matchesIn(t, "scripts/servers.sh", `(?m)^(?:servers=')?([a-z]+-[0-9.]+) [a-z-]+ [a-z]+-server`), j.Strategy.Matrix.Server)
				}
			}
		}
	}
	require.Contains(t, runs["ci.yml"], ".ci/run")
	require.Contains(t, runs["nightly.yml"], "make nightly")
	require.Contains(t, runs["nightly.yml"], "scripts/servers.sh ${{ matrix.server }}")

	var c struct{ Image, OnCreateCommand string }
	require.NoError(t, json.Unmarshal([]byte(readTop(t, ".devcontainer/devcontainer.json")), &c))
	require.Equal(t, image(t), c.Image, "the development container")
	requireCommand(t, c.OnCreateCommand)
}

// Every file with YAML, also those that no other test reads, can be read.
func TestYAML(t *testing.T) {
	files := 0
	inTree(t, func(name string, text func() string) {
		if !slices.Contains([]string{".yml", ".yaml"}, path.Ext(name)) {
			return
		}
		files++
		decoder, err := yaml.NewDecoder(strings.NewReader(text())), error(nil)
		for err == nil {
			var document any
			err = decoder.Decode(&document)
		}
		require.ErrorIs(t, err, io.EOF, name)
	})
	require.Greater(t, files, 15)
}

// A release is made of the command's module, in a directory that git does not see: with a file that
// it sees, the binaries would call themselves changed.
func TestRelease(t *testing.T) {
	var r struct {
		Dist   string
		Builds []struct {
			ID, Dir      string
			Env          []string
			Goos, Goarch []string
		}
		Kos []struct{ Build string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(readTop(t, ".goreleaser.yaml")), &r))
	require.Contains(t, readTop(t, ".gitignore"), "/"+path.Dir(r.Dist)+"/\n")
	require.Len(t, r.Builds, 1)
	require.Contains(t, readTop(t, r.Builds[0].Dir+"/main.go"), "package main\n")
	require.Contains(t, r.Builds[0].Env, "GOWORK=off")
	require.Len(t, r.Kos, 1)
	require.Equal(t, r.Builds[0].ID, r.Kos[0].Build)
}
