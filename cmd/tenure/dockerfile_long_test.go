//go:build long

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The build step of the Dockerfile makes the binary from what git has, with the Go of go.mod, and
// the image has that, whose user is not root. The step is carried out here, and no image is built.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	has := func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile("(?m)^"+pattern+"$").FindAllStringSubmatch(string(text), -1)
		require.Len(t, found, 1, pattern)
		return found[0][1]
	}
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	require.Contains(t, string(mod), "\ngo "+has(`FROM golang:(\S+) AS build`))
	has(`(FROM scratch)`)
	has(`COPY (\.) /src`)
	has(`USER ([1-9]\d*:[1-9]\d*)`) // scratch has no names of users
	require.Equal(t, `["`+has(`COPY --from=build /tenure (\S+)`)+`"]`, has(`ENTRYPOINT (.+)`))

	source, binary := t.TempDir(), filepath.Join(t.TempDir(), "tenure")
	files, err := exec.Command("git", "-C", "../..", "ls-files", "-co", "--exclude-standard").Output()
	require.NoError(t, err)
	for _, name := range strings.Fields(string(files)) {
		copyFile(t, filepath.Join("../..", name), filepath.Join(source, name))
	}
	cmd := exec.Command("sh", "-c", has(`RUN (.+ -o )/tenure \.`)+binary+" .")
	cmd.Dir = filepath.Join(source, has(`WORKDIR /src/(\S+)`))
	cmd.Env = append(os.Environ(), has(`ENV (\S+=\S+)`), "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(binary, "version").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "tenure ")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Lstat(from)
	if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
		return // it is not committed yet, or removed
	}
	require.NoError(t, err)
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, text, info.Mode().Perm()|0o200))
}
