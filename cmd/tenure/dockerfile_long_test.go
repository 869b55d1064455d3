//go:build long

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The Dockerfile is what a builder reads: instructions that there are, stages that it names, files
// that are in the context, and a command that builds the binary from them. It is not run here by
// such a builder; its build step is carried out on what it copies.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	const top = "../.."
	stages := []string{}
	work, made := "", ""
	root := t.TempDir() // of the first stage
	inside := func(path string) string {
		if !filepath.IsAbs(path) {
			path = filepath.Join(work, path)
		}
		return filepath.Join(root, path)
	}
	environ := append(os.Environ(), "GOFLAGS=-mod=mod")
	built := false
	for _, i := range readDockerfile(t) {
		switch i.name {
		case "FROM":
			require.Contains(t, []int{1, 3}, len(i.args))
			if len(i.args) == 3 {
				require.Equal(t, "AS", i.args[1])
				stages = append(stages, i.args[2])
			} else {
				stages = append(stages, "")
			}
			if i.args[0] != "scratch" {
				image, version, found := strings.Cut(i.args[0], ":")
				require.True(t, found && image == "golang", i.args[0])
				mod, err := os.ReadFile("go.mod")
				require.NoError(t, err)
				require.Contains(t, string(mod), "\ngo "+version, "the image has the version of go.mod")
			}
		case "ENV":
			require.Contains(t, i.args[0], "=")
			environ = append(environ, i.args...)
		case "WORKDIR":
			work = i.args[0]
		case "COPY":
			from, found := strings.CutPrefix(i.args[0], "--from=")
			if found {
				require.Contains(t, stages[:len(stages)-1], from)
				require.Len(t, i.args, 3)
				if i.args[1] == made {
					built = true
				}
				continue
			}
			require.Len(t, stages, 1, "the last stage has what the first one made, and no sources")
			to := i.args[len(i.args)-1]
			for _, source := range i.args[:len(i.args)-1] {
				if source == "." {
					// What git has, as a builder's clean checkout.
					files, err := exec.Command("git", "-C", top, "ls-files", "-co", "--exclude-standard").Output()
					require.NoError(t, err)
					for name := range strings.Lines(string(files)) {
						copyFile(t, filepath.Join(top, strings.TrimSpace(name)), filepath.Join(inside(to), strings.TrimSpace(name)))
					}
					continue
				}
				copyFile(t, filepath.Join(top, source), filepath.Join(inside(to), filepath.Base(source)))
			}
		case "RUN":
			if strings.Join(i.args, " ") == "go mod download" {
				continue // of all that go.mod names; the build loads what it needs, if this machine has not done so
			}
			at := slices.Index(i.args, "-o")
			require.Positive(t, at)
			made = i.args[at+1]
			command := strings.Replace(strings.Join(i.args, " "), "-o "+made, "-o "+filepath.Join(root, made), 1)
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir, cmd.Env = inside("."), environ
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", command, out)
			out, err = exec.Command(filepath.Join(root, made), "version").CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "tenure ")
		case "USER":
			require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, i.args[0], "scratch has no names of users, and root is none")
		case "ENTRYPOINT":
			require.Equal(t, `["`+made+`"]`, strings.Join(i.args, " "))
		default:
			t.Fatalf("%s is no instruction that this test knows", i.name)
		}
	}
	require.True(t, built)
	require.Len(t, stages, 2)
}
